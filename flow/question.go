package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
	"github.com/troupe-engine/troupe/flow/types"
)

// Question is the question of an approval, taken from the params of its node.
type Question struct {
	Title, Text string
	Form        *types.Form // type of the answer; nil if it is an action or any value
	Show        []Shown     // values of the task to show to the deciding person
	Assignees   []string    // people that should decide; others may, too
}

// Shown is a value of the task with its label.
type Shown struct {
	Name  string
	Ref   string
	Value json.RawMessage // resolved value; nil before
}

// QuestionFault is an error in a question, with its place in the params.
type QuestionFault struct {
	Path []string
	types.Problem
}

// QuestionParams lists the params of an approval that define its question.
var QuestionParams = []string{"title", "text", "form", "show", "assignees"}

const (
	maxTitle     = 200
	maxQuestion  = 10_000
	maxShown     = 50
	maxAssignees = 100
)

// ReadQuestion reads the question of an approval. Invalid parts are omitted and reported as faults.
func ReadQuestion(params json.RawMessage) (q Question, faults []QuestionFault) {
	r := questionReader{params: params}
	q.Title = r.readText("title", maxTitle)
	q.Text = r.readText("text", maxQuestion)
	q.Form = r.readForm()
	q.Show = r.readShow()
	for i, v := range r.readList("assignees", maxAssignees) {
		if name, ok := r.readName(v, "assignees", inList(i)); ok {
			q.Assignees = append(q.Assignees, name)
		}
	}
	return q, r.faults
}

// titleOf returns the title alone, because a decision needs no other part of the question.
func titleOf(params json.RawMessage) string {
	r := questionReader{params: params}
	return r.readText("title", maxTitle)
}

type questionReader struct {
	params json.RawMessage
	faults []QuestionFault
}

func inList(i int) string { return fmt.Sprintf("[%d]", i) }

func (r *questionReader) addFault(path []string, format string, args ...any) {
	r.faults = append(r.faults, QuestionFault{path, types.Problem{Msg: fmt.Sprintf(format, args...)}})
}

// readText reads a param that is a text with a maximum length in bytes.
func (r *questionReader) readText(name string, most int) string {
	raw, there := expr.Field(r.params, name)
	if !there {
		return ""
	}
	text, ok := expr.String(raw)
	switch {
	case !ok:
		r.addFault([]string{name}, "must be a string, is %s", expr.KindOf(raw))
		return ""
	case len(text) > most || !IsText(text):
		r.addFault([]string{name}, "must be UTF-8 text of at most %d bytes", most)
		return ""
	}
	return text
}

func (r *questionReader) readForm() *types.Form {
	raw, _ := expr.Field(r.params, "form")
	form, problems := types.ReadForm(raw)
	for _, p := range problems {
		r.faults = append(r.faults, QuestionFault{append([]string{"form"}, p.Path...), p})
	}
	return form
}

func (r *questionReader) readList(name string, most int) []json.RawMessage {
	raw, there := expr.Field(r.params, name)
	if !there {
		return nil
	}
	list, ok := expr.Elements(raw)
	switch {
	case !ok:
		r.addFault([]string{name}, "must be a list, is %s", expr.KindOf(raw))
	case len(list) > most:
		r.addFault([]string{name}, "has %d elements, more than %d", len(list), most)
		return nil
	}
	return list
}

func (r *questionReader) readName(raw json.RawMessage, path ...string) (string, bool) {
	name, ok := expr.String(raw)
	if !ok || name == "" || len(name) > MaxName || !IsName(name) {
		r.addFault(path, "must be a text of 1 to %d bytes", MaxName)
		return "", false
	}
	return name, true
}

// readShow reads a list of references, or an object from labels to references.
func (r *questionReader) readShow() (list []Shown) {
	raw, there := expr.Field(r.params, "show")
	if there && expr.KindOf(raw) == expr.KindObject {
		members, _ := expr.Members(raw)
		if len(members) > maxShown {
			r.addFault([]string{"show"}, "has %d members, more than %d", len(members), maxShown)
			return nil
		}
		for _, m := range members {
			if ref, ok := r.readReference(m.Value, m.Key); ok {
				list = append(list, Shown{Name: m.Key, Ref: ref})
			}
		}
		return list
	}
	for i, v := range r.readList("show", maxShown) {
		if ref, ok := r.readReference(v, inList(i)); ok {
			_, name, _ := strings.Cut(ref, ".")
			if name == "" {
				name = strings.TrimPrefix(ref, "$")
			}
			list = append(list, Shown{Name: name, Ref: ref})
		}
	}
	return list
}

// readReference reads a reference. A word without `$` is a key of shared.
func (r *questionReader) readReference(raw json.RawMessage, at string) (string, bool) {
	ref, ok := r.readName(raw, "show", at)
	if !ok {
		return "", false
	}
	if !strings.HasPrefix(ref, "$") {
		ref = "$shared." + ref
	}
	if expr.ParseRef(ref).Literal() {
		r.addFault([]string{"show", at}, "%.80q is no reference: write $shared.KEY, $params.KEY or $input.KEY", ref)
		return "", false
	}
	return ref, true
}

// OpenQuestion is a waiting approval with all information for the deciding person.
type OpenQuestion struct {
	Question
	// Actions lists the actions that have an effect of their own, approved and rejected first. It
	// is empty if the question has a form.
	Actions []string
}

// Question returns the question of a waiting approval, or false if no approval waits at the
// address.
func (s *State) Question(at Address) (OpenQuestion, bool) {
	st := s.activeStep(at)
	if st == nil || st.Node.Kind != KindApproval || s.Status.Ended() {
		return OpenQuestion{}, false
	}
	q, _ := ReadQuestion(st.Node.Params)
	env := st.scope.referenceEnv(st.Params, st.stepInput())
	for i := range q.Show {
		q.Show[i].Value = orNull(expr.ParseRef(q.Show[i].Ref).Resolve(env))
	}
	a := OpenQuestion{Question: q}
	if q.Form == nil {
		a.Actions = st.Node.decisionActions()
	}
	return a, true
}

const (
	approved = "approved"
	rejected = "rejected"
)

// decisionActions returns the actions that a person can choose.
func (n *PlanNode) decisionActions() []string {
	list := []string{approved, rejected}
	for _, action := range slices.Sorted(maps.Keys(n.Edges)) {
		if !slices.Contains([]string{approved, rejected, "default", "error"}, action) {
			list = append(list, action)
		}
	}
	return list
}

// answerValue returns the value that an answer sets, or an error if it is invalid.
func (n *PlanNode) answerValue(c Answer) (json.RawMessage, error) {
	q, _ := ReadQuestion(n.Params)
	switch {
	case c.Action != "" && len(c.Value) > 0:
		return nil, Errorf(Invalid, "an answer is an action or a value, not both")
	case q.Form != nil && c.Action != "":
		return nil, Errorf(Invalid, "the approval is answered by a form: send a value that fits it")
	case q.Form != nil:
		if problems := q.Form.Check(orNull(c.Value)); len(problems) > 0 {
			return nil, Errorf(Invalid, "the answer does not fit the form: %s", problems.Below("value"))
		}
		if !isDecision(c.Value) {
			return nil, Errorf(Invalid, "the answer decides nothing: send another value than null or an empty text")
		}
		return c.Value, nil
	case c.Action != "":
		return n.actionValue(c.Action)
	case !isDecision(c.Value):
		return nil, Errorf(Invalid, "the answer decides nothing: send an action such as approved or rejected, or a value")
	}
	return c.Value, nil
}

// actionValue returns the value for an action.
func (n *PlanNode) actionValue(action string) (json.RawMessage, error) {
	switch action {
	case approved, "approve":
		return json.RawMessage("true"), nil
	case rejected, "reject":
		return json.RawMessage("false"), nil
	}
	if list := n.decisionActions(); !slices.Contains(list, action) {
		return nil, Errorf(Invalid, "nothing follows from the action %.80q: it is one of %s", action, strings.Join(list, ", "))
	}
	return expr.Quote(action), nil
}
