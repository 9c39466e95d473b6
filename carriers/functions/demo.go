package functions

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/job"
)

// errFailed is the only error of the demo functions. Flows may compare its text.
var errFailed = errors.New("failed")

// RegisterDemo adds the demo functions mul, upper and log_result.
func RegisterDemo(r *Registry) {
	r.RegisterRaw("mul", multiplyInput)
	r.RegisterRaw("upper", upperInput)
	r.RegisterRaw("log_result", logResult)
}

// multiplyInput multiplies the input by params.mul. An invalid input counts as 0, and an invalid
// factor as 1.
func multiplyInput(_ context.Context, job job.Job) (json.RawMessage, error) {
	x, ok := parseNumber(job.Input)
	if !ok {
		x = 0
	}
	factor, ok := parseNumber(paramValue(job.Params, "mul"))
	if !ok {
		factor = 1
	}
	out, err := json.Marshal(x * factor)
	if err != nil { // infinite
		return nil, errFailed
	}
	return out, nil
}

// upperInput converts the input, or params.text, to upper case.
func upperInput(_ context.Context, job job.Job) (json.RawMessage, error) {
	s, ok := parseString(job.Input)
	if !ok {
		s, ok = parseString(paramValue(job.Params, "text"))
	}
	if !ok {
		return nil, errFailed
	}
	return json.Marshal(strings.ToUpper(s))
}

// logResult returns its input.
func logResult(_ context.Context, job job.Job) (json.RawMessage, error) {
	return job.Input, nil
}

func paramValue(params json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(params, &all) != nil {
		return nil
	}
	return all[name]
}

func parseNumber(raw json.RawMessage) (float64, bool) {
	x, err := strconv.ParseFloat(string(raw), 64)
	return x, err == nil
}

func parseString(raw json.RawMessage) (string, bool) {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}
