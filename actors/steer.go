package actors

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// Append adds units to a fanout that has begun and answers their indexes. The same request answers the
// same ones. A route, if given, must be the step's.
func (m *Member) Append(ctx context.Context, task string, at flow.Address, items []json.RawMessage, route, request string) ([]int, error) {
	for _, item := range items {
		if err := checkJSON(item); err != nil {
			return nil, flow.Errorf(flow.Invalid, "items: %v", err)
		}
	}
	if request == "" {
		request = uuid.NewString()
	}
	a, err := m.ask(ctx, task, flow.Append{Address: at, Items: items, Route: route}, request)
	if err != nil {
		return nil, err
	}
	indexes := make([]int, len(items))
	for i := range indexes {
		indexes[i] = a.first + i
	}
	return indexes, nil
}

// RetryTask has a failed task go on where it failed.
func (m *Member) RetryTask(ctx context.Context, task, request string) error {
	return m.Do(ctx, task, flow.RetryTask{}, request)
}

// CompleteDirect ends a unit whose route is direct. Of the address only scope, node and unit are needed.
// Doing it again changes nothing.
func (m *Member) CompleteDirect(ctx context.Context, task string, at flow.Address, output json.RawMessage) (changed bool, err error) {
	events, err := m.Tell(ctx, task, flow.Report{Address: at, Output: output, Direct: true}, "")
	return len(events) > 0, err
}

// FailDirect ends such a unit as failed. It is not tried again: nobody but the caller would.
func (m *Member) FailDirect(ctx context.Context, task string, at flow.Address, text string) (changed bool, err error) {
	if text == "" {
		text = "failed"
	}
	events, err := m.Tell(ctx, task, flow.Report{Address: at, Error: text, Fatal: true, Direct: true}, "")
	return len(events) > 0, err
}

// Cancel ends a task; flow.Cancel says how.
func (m *Member) Cancel(ctx context.Context, task string, how flow.Cancel) error {
	return m.Do(ctx, task, how, "")
}
