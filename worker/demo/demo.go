// Package demo provides the services that examples and demonstrations use. All are pure functions.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/worker"
)

// demoService is a handler and its name.
type demoService struct {
	name   string
	handle worker.Handler
}

var pushServices = []demoService{
	{"transform", transformInput}, {"sum", sumNumbers}, {"route", chooseRoute},
	{"rows", readRows}, {"price", addPrice}, {"store", countStored},
	{"reserve", issueNumber("reservation", "R")}, {"pay", issueNumber("payment", "P")}, {"ship", issueNumber("parcel", "S")},
	{"release", takeBack("reservation", "released")}, {"refund", takeBack("payment", "refunded")}, {"refuse", refuseJob},
}

var pullServices = []demoService{{"async-transform", asyncTransform}, {"email-service", sendEmail},
	{"assess", assessRisk}, {"clauses", splitClauses}}

// PushServices returns the names of the services of push workers.
func PushServices() []string { return serviceNames(pushServices) }

// PullServices returns the names of the services of pull workers.
func PullServices() []string { return serviceNames(pullServices) }

func serviceNames(services []demoService) []string {
	list := make([]string, len(services))
	for i, s := range services {
		list[i] = s.name
	}
	return list
}

// Push makes w offer the push services.
func Push(w *worker.Worker) {
	for _, s := range pushServices {
		w.Handle(s.name, s.handle)
	}
}

// Options configures Pull.
type Options struct {
	Services []string      // services to offer; empty means PullServices
	Delay    time.Duration // before each job's result
}

// Pull makes w offer pull services. An unknown service can be offered, too: its jobs fail.
func Pull(w *worker.Worker, o Options) {
	if len(o.Services) == 0 {
		o.Services = PullServices()
	}
	for _, name := range o.Services {
		h := failUnknown
		for _, s := range pullServices {
			if s.name == name {
				h = s.handle
			}
		}
		w.Handle(name, delayHandler(o.Delay, h))
	}
}

func delayHandler(d time.Duration, h worker.Handler) worker.Handler {
	if d <= 0 {
		return h
	}
	return func(ctx context.Context, job worker.Job) (any, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return h(ctx, job)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func failUnknown(_ context.Context, job worker.Job) (any, error) {
	return nil, errors.New("unknown service: " + job.Service)
}

// transformInput changes the case of a string or multiplies a number.
func transformInput(_ context.Context, job worker.Job) (any, error) {
	params := decodeObject(job.Params)
	switch in := decodeValue(job.Input).(type) {
	case string:
		switch params["op"] {
		case "upper":
			return strings.ToUpper(in), nil
		case "lower":
			return strings.ToLower(in), nil
		}
		return nil, errors.New("unsupported op")
	case float64:
		if factor, ok := params["mul"].(float64); ok {
			in *= factor
		}
		return in, nil
	}
	return nil, errors.New("bad input")
}

// sumNumbers returns the sum of an array's numbers and numeric strings.
func sumNumbers(_ context.Context, job worker.Job) (any, error) {
	list, ok := decodeValue(job.Input).([]any)
	if !ok {
		return nil, errors.New("bad input")
	}
	total := 0.0
	for _, member := range list {
		switch m := member.(type) {
		case float64:
			total += m
		case string:
			if x, err := strconv.ParseFloat(m, 64); err == nil {
				total += x
			}
		}
	}
	return total, nil
}

// chooseRoute returns the action to continue with.
func chooseRoute(_ context.Context, job worker.Job) (any, error) {
	action, _ := decodeObject(job.Params)["action"].(string)
	if action == "" {
		action = "goB"
	}
	return map[string]string{"action": action}, nil
}

func asyncTransform(_ context.Context, job worker.Job) (any, error) {
	in := decodeValue(job.Input)
	if fields, ok := in.(map[string]any); ok {
		if text, ok := fields["text"].(string); ok {
			return fmt.Sprintf("[%v] %s", fields["title"], strings.ToUpper(text)), nil
		}
	}
	text, ok := in.(string)
	if !ok {
		text, ok = decodeObject(job.Params)["text"].(string)
	}
	if !ok {
		return nil, errors.New("expected string input or params['text']")
	}
	return strings.ToUpper(text) + " (ASYNC PROCESSED)", nil
}

func sendEmail(_ context.Context, job worker.Job) (any, error) {
	to, _ := decodeObject(job.Params)["to"].(string)
	return map[string]string{"status": "sent", "to": to}, nil
}

func decodeValue(raw json.RawMessage) (v any) {
	_ = json.Unmarshal(raw, &v) // invalid JSON counts as no input
	return v
}

func decodeObject(raw json.RawMessage) map[string]any {
	m, _ := decodeValue(raw).(map[string]any)
	return m
}
