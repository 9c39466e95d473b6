package engine

import (
	"cmp"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// The functions of this file run at the caller, before a request is sent. They make a request safe
// to repeat, and determine the task that it is for.

// Named returns the order with a request id if a repetition of the order would have a second
// effect. The caller keeps the id, so that the order can be repeated after a lost answer. Other
// orders get no id, because a task remembers only few ids.
func (o Order) Named() Order {
	if o.Request != "" {
		return o
	}
	switch o.Command.(type) {
	case flow.Signal, flow.Answer, flow.Pause, flow.Resume, flow.Append, flow.RetryTask:
		o.Request = uuid.NewString()
	}
	return o
}

// keySpace is the namespace of ids derived from idempotency keys.
var keySpace = uuid.MustParse("6f1d1a52-6b1c-4b5e-9a51-5e6c1c1a7e57")

// TaskID returns the id of the requested task of a flow. Without a Key or an ID, each call returns
// a new id.
func (t *NewTask) TaskID(flowID string) (string, error) {
	switch {
	case t.Task != "":
		return t.Task, nil
	case t.ID != "":
		id, err := uuid.Parse(t.ID)
		if err != nil || len(t.ID) != len(id.String()) {
			return "", flow.Errorf(flow.Invalid, "the id %.60q is no UUID: send one such as %s, or none", t.ID, uuid.NewString())
		}
		return id.String(), nil
	case t.Key != "":
		if err := flow.CheckNames("the idempotency key", t.Key); err != nil {
			return "", err
		}
		return "task-" + uuid.NewSHA1(keySpace, []byte(flowID+"\n"+t.Key)).String(), nil
	}
	return NewTaskID(), nil
}

// NewTaskID returns an id that no other task has.
func NewTaskID() string { return "task-" + uuid.Must(uuid.NewV7()).String() }

// maxPollNames is the maximum number of services, and of labels, in a poll.
const maxPollNames = 1000

// Check rejects names that a store cannot keep or search for, and polls with too many names.
func (p *Poll) Check() error {
	return cmp.Or(flow.CheckName("the worker's id", p.Worker),
		checkNames("services", "the service", p.Services), checkNames("labels", "the label", p.Labels))
}

func checkNames(what, each string, names []string) error {
	if len(names) > maxPollNames {
		return flow.Errorf(flow.Invalid, "the poll names %d %s, more than the %d there may be: "+
			"name those of this worker", len(names), what, maxPollNames)
	}
	for _, name := range names {
		if err := flow.CheckName(each, name); err != nil {
			return err
		}
	}
	return nil
}
