// Command gotemplate answers cases of the corpus as Go's own text/template does.
//
// In: cases on standard input, one JSON object a line, in the corpus's format (see
// shared/corpora/README.md). Out: for each, in order, a line of JSON: the case's "expect", or
// {"skip": why} where there is no answer worth comparing. A case that would hang, or eat the
// machine, ends the program instead: whoever started it skips that case and starts it again.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"text/template"
	"time"
	"unicode/utf8"
)

const (
	// Of the processor's time: a busy machine changes no answer.
	caseTime   = 3 * time.Second
	outputSize = 1 << 20
	stackSize  = 512 << 20
	memorySize = 4 << 30
)

type kase struct {
	Template string            `json:"template"`
	Data     json.RawMessage   `json:"data"`
	Options  string            `json:"options"`
	Defines  map[string]string `json:"defines"`
}

type answer struct {
	OK        bool   `json:"ok"`
	Output    string `json:"output"`
	Stage     string `json:"stage"`
	Error     string `json:"error"`
	OutputB64 string `json:"output_b64,omitempty"`
	Partial   string `json:"partial,omitempty"`
}

type skipped struct {
	Skip string `json:"skip"`
}

func main() {
	debug.SetMaxStack(stackSize)
	limit := syscall.Rlimit{Cur: memorySize, Max: memorySize}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		fmt.Fprintln(os.Stderr, "oracle: no limit of memory:", err)
		os.Exit(1)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	var began atomic.Int64
	go watch(&began)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		began.Store(int64(processorTime()))
		text := encode(answerLine(line))
		// The next case may end the program, so an answer never waits for it.
		if _, err := os.Stdout.Write(text); err != nil {
			os.Exit(1)
		}
	}
}

// watch ends the program where a case takes too long.
func watch(began *atomic.Int64) {
	for range time.Tick(caseTime / 20) {
		if processorTime()-time.Duration(began.Load()) > caseTime {
			os.Exit(3)
		}
	}
}

// processorTime is what this program has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func encode(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	return text.Bytes()
}

func answerLine(line []byte) any {
	var c kase
	if err := json.Unmarshal(line, &c); err != nil {
		return skipped{"not a case: " + err.Error()}
	}
	return c.answer()
}

// options are the parts of a case's "options".
type options struct {
	missingKey  string
	left, right string
	entry       string
	numbers     string
	typed       bool
}

func parseOptions(text string) options {
	o := options{missingKey: "missingkey=default", entry: "t", numbers: "float"}
	for option := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "missingkey":
			o.missingKey = option
		case "delims":
			o.left, o.right, _ = strings.Cut(value, ",")
		case "entry":
			o.entry = value
		case "numbers":
			o.numbers = value
		case "shape":
			o.typed = value == "typed"
		}
	}
	if o.typed {
		o.numbers = "int"
	}
	return o
}

func (c kase) answer() (result any) {
	// Where Go itself panics, there is nothing to be equal to.
	defer func() {
		if panicked := recover(); panicked != nil {
			result = skipped{fmt.Sprint("panic: ", panicked)}
		}
	}()
	o := parseOptions(c.Options)
	t := template.New("t").Delims(o.left, o.right).Option(o.missingKey)
	names := make([]string, 0, len(c.Defines))
	for name := range c.Defines {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := t.New(name).Parse(c.Defines[name]); err != nil {
			return answer{Stage: "parse", Error: err.Error()}
		}
	}
	if _, err := t.Parse(c.Template); err != nil {
		return answer{Stage: "parse", Error: err.Error()}
	}
	data, err := o.decode(c.Data)
	if err != nil {
		return skipped{err.Error()}
	}
	var out limited
	err = t.ExecuteTemplate(&out, o.entry, data)
	if out.full {
		return skipped{"more output than the oracle takes"}
	}
	text := out.Bytes()
	if err != nil {
		return answer{Stage: "exec", Error: err.Error(), Partial: string(text)}
	}
	a := answer{OK: true, Output: string(text)}
	if !utf8.Valid(text) {
		a.Output = strings.ToValidUTF8(a.Output, "\ufffd")
		a.OutputB64 = base64.StdEncoding.EncodeToString(text)
	}
	return a
}

// limited is a buffer that refuses to grow beyond outputSize.
type limited struct {
	bytes.Buffer
	full bool
}

func (l *limited) Write(text []byte) (int, error) {
	if l.Len()+len(text) > outputSize {
		l.full = true
		return 0, errors.New("too much output")
	}
	return l.Buffer.Write(text)
}

// decode makes Go values of a case's data, as its options say.
func (o options) decode(data json.RawMessage) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if o.numbers != "float" {
		decoder.UseNumber()
	}
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	switch {
	case o.typed:
		return typed(value, "")
	case o.numbers == "int":
		return integers(value)
	}
	return value, nil
}

// integers makes ints of whole numbers and floats of all others, in place.
func integers(value any) (any, error) {
	var err error
	switch value := value.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return int(n), nil
		}
		return strconv.ParseFloat(string(value), 64)
	case []any:
		for i := range value {
			if value[i], err = integers(value[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range value {
			if value[key], err = integers(value[key]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// typed makes structs of objects, maps of strings of those with certain names, and slices of
// strings where all items are strings.
func typed(value any, name string) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		if name == "Vars" || name == "Image" || name == "Labels" {
			return stringMap(value)
		}
		return structure(value)
	case []any:
		return slice(value)
	}
	return integers(value)
}

func stringMap(value map[string]any) (any, error) {
	strs := make(map[string]string, len(value))
	for key, item := range value {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("%q isn't a string", key)
		}
		strs[key] = text
	}
	return strs, nil
}

func slice(value []any) (any, error) {
	strs := make([]string, 0, len(value))
	items := make([]any, len(value))
	for i, item := range value {
		if text, ok := item.(string); ok {
			strs = append(strs, text)
		}
		item, err := typed(item, "")
		if err != nil {
			return nil, err
		}
		items[i] = item
	}
	if len(strs) > 0 && len(strs) == len(items) {
		return slices.Clip(strs), nil
	}
	return items, nil
}

func structure(value map[string]any) (any, error) {
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	slices.Sort(names)
	fields := make([]reflect.StructField, len(names))
	values := make([]reflect.Value, len(names))
	for i, name := range names {
		if !token.IsIdentifier(name) || !token.IsExported(name) {
			return nil, fmt.Errorf("%q can't be a field", name)
		}
		item, err := typed(value[name], name)
		if err != nil {
			return nil, err
		}
		values[i] = reflect.ValueOf(item)
		fields[i] = reflect.StructField{Name: name, Type: reflect.TypeFor[any]()}
		if item != nil {
			fields[i].Type = values[i].Type()
		}
	}
	made := reflect.New(reflect.StructOf(fields)).Elem()
	for i, value := range values {
		if value.IsValid() {
			made.Field(i).Set(value)
		}
	}
	return made.Interface(), nil
}
