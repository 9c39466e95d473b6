package durable

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/troupe-engine/troupe/internal/conversation"
	"github.com/troupe-engine/troupe/job"
)

// questionOptions are the options of Approve and Ask.
var questionOptions = []string{"Within", "Text", "Show", "Assign"}

// Approve asks a person for a decision and waits for it. It returns false if the decision is false
// or the action "rejected", and true for any other decision.
func Approve(f *Flow, name string, options ...Option) (bool, error) {
	raw, err := f.b.Await(conversation.Approval, name, name, optionsOf("Approve", options, questionOptions...))
	return err == nil && string(raw) != "false" && string(raw) != `"rejected"`, err
}

// Ask asks a person to fill in a form with the fields of T, which is a struct, and waits for the
// answer. An answer that does not fit is rejected. A signal with the name of the question also
// counts as an answer, and is not checked.
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

// Show adds a labeled value to an Approve or an Ask.
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

// Assign names the people who should decide an Approve or an Ask. Other people may decide, too.
func Assign(people ...string) Option {
	return Option{"Assign", func(o *conversation.Options) { o.SetQuestion().Assignees = people }}
}
