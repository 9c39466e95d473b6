package sim

import (
	"encoding/json"
	"hash/fnv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

// services are the services used by flows. Their answers depend only on the input and the attempt,
// so it does not matter which worker carries out a job, when, or how often.
var services = []string{"echo", "inc", "route", "flaky", "odd", "boom", "fatal", "big", "panics", "poison", twins}

// twins is a service whose jobs start two pieces of external work.
const twins = "twins"

// dagServices are further services, used only in dag mode.
var dagServices = []string{"coin", "yesno", "list", "second", "unlucky"}

// directOutput returns the output with which a direct unit is completed.
func directOutput(unit int) json.RawMessage { return encodeValue(object{"unit": unit}) }

// hang is a service that never answers.
const hang = "hang"

func serveJob(job flow.Job) flow.Report {
	r := flow.Report{Address: job.Address}
	h := fnv.New32a()
	h.Write(encodeValue(decodeValue(job.Input))) // independent of the order of fields
	mark := h.Sum32()
	switch orElse(job.Exec.Service, job.Exec.Func) {
	case "inc":
		n, _ := expr.Number(job.Input)
		r.Output, _ = json.Marshal(n + 1)
	case "route":
		r.Output = json.RawMessage(`{"action":"` + []string{"go", "stop", "other"}[mark%3] + `","in":` + jsonText(job.Input) + `}`)
	case "flaky":
		if job.Attempt <= int(mark%3) {
			r.Error = "not yet"
		}
		r.Output = job.Input
	case "odd":
		if mark%2 == 1 {
			r.Error = "odd"
		}
		r.Output = job.Params
	case "boom":
		r.Error = "boom"
	case "fatal":
		r.Error, r.Fatal = "fatal", true
	case "big":
		r.Output, _ = json.Marshal(strings.Repeat("x", 500+int(mark%4000)))
	case "panics":
		if job.Attempt == 1 {
			r.Error = panicText
		}
		r.Output = job.Input
	case twins:
		r.Output = json.RawMessage("[" + jsonText(job.Input) + "," + jsonText(job.Input) + "]")
	case "coin":
		if mark%2 == 1 {
			r.Error = "tails"
		}
		r.Output = json.RawMessage(`{"heads":true}`)
	case "yesno":
		r.Output = encodeValue(mark%3 == 0)
	case "list":
		r.Output = encodeValue([]any{1, nil, "three", object{"four": 4}}[:mark%5])
	case "second":
		if job.Visit < 2 {
			r.Error = "not the first time"
		}
		r.Output = job.Input
	case "unlucky":
		if mark%2 == 1 && job.Visit < 2 {
			r.Error = "not the first time, perhaps"
		}
		r.Output = job.Input
	case "poison":
		if mark%2 == 1 {
			r.Output, _ = json.Marshal(poison)
		}
	default:
		r.Output = job.Input
	}
	if r.Error != "" {
		r.Output = nil
	}
	return r
}

// panicText is the beginning of the error of a panicking carrier.
const panicText = "panic: of a carrier"

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

func jsonText(v json.RawMessage) string {
	if len(v) == 0 {
		return "null"
	}
	return string(v)
}
