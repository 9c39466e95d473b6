package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/troupe-engine/troupe/worker"
)

// issueNumber returns a handler that issues a new number for an order.
func issueNumber(what, prefix string) worker.Handler {
	return func(_ context.Context, job worker.Job) (any, error) {
		order, ok := decodeObject(job.Input)["order"]
		if !ok {
			return nil, worker.Fatal(errors.New("expected an object with order"))
		}
		return map[string]string{what: fmt.Sprintf("%s-%v", prefix, order)}, nil
	}
}

// takeBack returns a handler that reverts issueNumber. Its result is the number.
func takeBack(what, done string) worker.Handler {
	return func(_ context.Context, job worker.Job) (any, error) {
		number, ok := decodeObject(job.Input)[what]
		if !ok {
			return nil, worker.Fatal(fmt.Errorf("expected an object with %s", what))
		}
		return map[string]any{done: number}, nil
	}
}

// refuseJob fails with the reason that its params name.
func refuseJob(_ context.Context, job worker.Job) (any, error) {
	reason, _ := decodeObject(job.Params)["reason"].(string)
	if reason == "" {
		reason = "refused"
	}
	return nil, worker.Fatal(errors.New(reason))
}

// assessRisk returns the risk of a contract: {"run": {"amount": …}}.
func assessRisk(_ context.Context, job worker.Job) (any, error) {
	run, _ := decodeObject(job.Input)["run"].(map[string]any)
	amount, ok := run["amount"].(float64)
	if !ok {
		return nil, worker.Fatal(errors.New("expected run.amount"))
	}
	if amount >= 1000 {
		return map[string]string{"risk": "high"}, nil
	}
	return map[string]string{"risk": "low"}, nil
}

// splitClauses splits a contract into sentences: {"run": {"text": …}}.
func splitClauses(_ context.Context, job worker.Job) (any, error) {
	run, _ := decodeObject(job.Input)["run"].(map[string]any)
	text, ok := run["text"].(string)
	if !ok {
		return nil, worker.Fatal(errors.New("expected run.text"))
	}
	list := []string{}
	for sentence := range strings.SplitSeq(text, ".") {
		if s := strings.TrimSpace(sentence); s != "" {
			list = append(list, s)
		}
	}
	return list, nil
}
