package durable

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// Options of Approve and of Ask.
var questionOptions = []string{"Within", "Text", "Show", "Assign"}

// Approve asks a person for a decision and waits for it. It returns true if that is neither false
// nor the action "rejected".
func Approve(f *Flow, name string, options ...Option) (bool, error) {
	raw, err := f.b.Await(conversation.Approval, name, name, optionsOf("Approve", options, questionOptions...))
	return err == nil && string(raw) != "false" && string(raw) != `"rejected"`, err
}

// Ask asks a person to fill in a form with the fields of T, which is a struct, and waits for the
// answer. Answers that do not fit are refused. A signal with the name of the question is an answer,
// too, and is not checked.
func Ask[T any](f *Flow, name string, options ...Option) (T, error) {
	form, err := job.InputSchema(reflect.TypeFor[T]())
	if err == nil && form == nil {
		err = fmt.Errorf("%s has no fields to fill in", reflect.TypeFor[T]())
	}
	if err != nil {
		panic("durable: a form cannot be made: " + err.Error())
	}
	o := optionsOf("Ask", options, questionOptions...)
	o.SetQuestion().Form = form
	raw, err := f.b.Await(conversation.Approval, name, name, o)
	return decodeResult[T](name, raw, err)
}

// Text explains an Approve or an Ask to the deciding person.
func Text(text string) Option {
	return Option{"Text", func(o *conversation.Options) { o.SetQuestion().Text = text }}
}

// Show shows a value with a label beside an Approve or an Ask.
func Show(label string, value any) Option {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("durable: the value %q cannot be written as JSON: %v", label, err))
	}
	return Option{"Show", func(o *conversation.Options) {
		q := o.SetQuestion()
		q.Show = append(q.Show, conversation.Shown{Label: label, Value: raw})
	}}
}

// Assign names the people that should decide an Approve or an Ask. Others may, too.
func Assign(people ...string) Option {
	return Option{"Assign", func(o *conversation.Options) { o.SetQuestion().Assignees = people }}
}
