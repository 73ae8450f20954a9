// Answers cases of templates with Sprig's functions, and with Helm's, as the real ones do.
//
// In: cases in the format of the corpus, one JSON object a line, on standard input. Out: the same
// objects with `expect` filled in, on standard output. `cargo xtask sprig-corpus` builds and runs it.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type testCase struct {
	ID       string            `json:"id"`
	Area     string            `json:"area"`
	Template string            `json:"template"`
	Data     json.RawMessage   `json:"data"`
	Options  string            `json:"options"`
	Defines  map[string]string `json:"defines,omitempty"`
	Expect   expectation       `json:"expect"`
}

type expectation struct {
	OK        bool   `json:"ok"`
	Output    string `json:"output"`
	OutputB64 string `json:"output_b64,omitempty"`
	Stage     string `json:"stage"`
	Error     string `json:"error"`
}

// Helm's functions, as its documentation has them, for a template and those associated with it.
func helm(root *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"tpl": func(text string, data any) (string, error) {
			clone, err := root.Clone()
			if err != nil {
				return "", err
			}
			clone.Funcs(helm(clone))
			parsed, err := clone.New("tpl").Parse(text)
			if err != nil {
				return "", err
			}
			var out strings.Builder
			err = parsed.Execute(&out, data)
			return out.String(), err
		},
		"required": func(message string, value any) (any, error) {
			if value == nil || value == "" {
				return value, errors.New(message)
			}
			return value, nil
		},
		"toYaml": func(value any) string {
			out, err := yaml.Marshal(value)
			if err != nil {
				return ""
			}
			return strings.TrimSuffix(string(out), "\n")
		},
		"fromYaml": func(text string) map[string]any {
			value := map[string]any{}
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				value["Error"] = err.Error()
			}
			return value
		},
		"fromYamlArray": func(text string) []any {
			value := []any{}
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				value = []any{err.Error()}
			}
			return value
		},
		"fromJsonArray": func(text string) []any {
			value := []any{}
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				value = []any{err.Error()}
			}
			return value
		},
	}
}

// Whole numbers as ints, as the planner hands them over.
func decode(raw json.RawMessage, ints bool) (any, error) {
	var data any
	if !ints {
		return data, json.Unmarshal(raw, &data)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		return nil, err
	}
	return withInts(data), nil
}

func withInts(value any) any {
	switch value := value.(type) {
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return int(whole)
		}
		float, _ := value.Float64()
		return float
	case []any:
		for index := range value {
			value[index] = withInts(value[index])
		}
	case map[string]any:
		for key := range value {
			value[key] = withInts(value[key])
		}
	}
	return value
}

func answer(c testCase) expectation {
	ints, missing := false, "default"
	for _, option := range strings.Split(c.Options, ";") {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "numbers":
			ints = value == "int"
		case "missingkey":
			missing = value
		}
	}
	failed := func(stage string, err error) expectation {
		return expectation{Stage: stage, Error: err.Error()}
	}
	root := template.New("t").Option("missingkey=" + missing).Funcs(sprig.TxtFuncMap())
	root.Funcs(helm(root))
	for name, text := range c.Defines {
		if _, err := root.New(name).Parse(text); err != nil {
			return failed("parse", err)
		}
	}
	if _, err := root.Parse(c.Template); err != nil {
		return failed("parse", err)
	}
	data, err := decode(c.Data, ints)
	if err != nil {
		return failed("data", err)
	}
	var out bytes.Buffer
	if err := root.Execute(&out, data); err != nil {
		return failed("exec", err)
	}
	if utf8.Valid(out.Bytes()) {
		return expectation{OK: true, Output: out.String()}
	}
	encoded := base64.StdEncoding.EncodeToString(out.Bytes())
	return expectation{OK: true, Output: strings.ToValidUTF8(out.String(), "\ufffd"), OutputB64: encoded}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if len(c.Data) == 0 {
			c.Data = json.RawMessage("null")
		}
		c.Expect = answer(c)
		if err := out.Encode(c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
