// How long Go's text/template takes for the templates of gotemplate/benches/templates.
//
// In: that folder, as the only argument. Out: one JSON object a line for each template and task:
// the median of several samples, and what was rendered.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/template"
	"time"
)

const (
	samples    = 41
	sampleTime = 4 * time.Millisecond
)

// userdata is shaped as Nstance's server passes it: structs, and maps of strings.
type userdata struct {
	Vars, Image map[string]string
	Instance    struct{ ID, Kind, Arch, Type, Hostname, FQDN, IP4 string }
	Server      struct{ Shard, RegistrationAddr, AgentAddr string }
	Provider    struct{ Kind, Region, Zone string }
	Cluster     struct{ ID string }
}

type record struct {
	Engine      string  `json:"engine"`
	Template    string  `json:"template"`
	Task        string  `json:"task"`
	Nanoseconds float64 `json:"nanoseconds"`
	Output      string  `json:"output,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: main FOLDER")
		os.Exit(2)
	}
	measure("userdata", new(userdata))
	measure("control_flow", new(map[string]any))
}

func measure(name string, data any) {
	text := read(name + ".tmpl")
	check(json.Unmarshal(read(name+".json"), data))

	parse := func() *template.Template {
		parsed, err := template.New("t").Parse(string(text))
		check(err)
		return parsed
	}
	parsed := parse()
	var out bytes.Buffer
	render := func() {
		out.Reset()
		check(parsed.Execute(&out, data))
	}

	report(record{Template: name, Task: "parse", Nanoseconds: median(func() { parse() })})
	nanoseconds := median(render)
	report(record{Template: name, Task: "render", Nanoseconds: nanoseconds, Output: out.String()})
}

// median is the median time of one call, in nanoseconds.
func median(task func()) float64 {
	calls := 1
	for elapsed(task, calls) < sampleTime {
		calls *= 2
	}
	times := make([]float64, samples)
	for i := range times {
		times[i] = float64(elapsed(task, calls).Nanoseconds()) / float64(calls)
	}
	slices.Sort(times)
	return times[samples/2]
}

func elapsed(task func(), calls int) time.Duration {
	begin := time.Now()
	for range calls {
		task()
	}
	return time.Since(begin)
}

func report(one record) {
	one.Engine = "Go " + runtime.Version()[len("go"):]
	line, err := json.Marshal(one)
	check(err)
	fmt.Println(string(line))
}

func read(name string) []byte {
	bytes, err := os.ReadFile(filepath.Join(os.Args[1], name))
	check(err)
	return bytes
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
