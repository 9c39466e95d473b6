package flow

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ApprovalState says what has become of an approval.
type ApprovalState string

// States of an approval.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalAnswered ApprovalState = "answered"
	ApprovalOver     ApprovalState = "over" // nobody decided: its time ran out, or the task ended or went another way
)

// Approval is a decision that a task asks somebody for. A task may ask for several at once.
type Approval struct {
	Address        // of the step
	Key     string // that an answer sets
	Title   string
	Since   int64
	Due     int64 // 0 = no end
	State   ApprovalState

	EndedAt int64 // 0 while it is open
	By      string
	Comment string
	Action  string // that it was answered with; "" = with a value that is none
}

// MaxComment bounds what somebody says to an answer, in bytes.
const MaxComment = 2000

// maxSpelledPlace is how many bytes of a place an approval's id spells out.
const maxSpelledPlace = 150

// ApprovalID names an approval across tasks, in characters that are safe in a URL. Of a long place
// it has the hash: scopes lie deep in each other, and an id has to fit into an index.
func ApprovalID(task string, at Address) string {
	place := []byte(at.Scope + "\n" + at.Node)
	told := base64.RawURLEncoding.EncodeToString(place)
	if len(place) > maxSpelledPlace {
		sum := sha256.Sum256(place)
		told = "~" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return task + "." + strconv.Itoa(at.Visit) + "." + told
}

// ApprovalTask is the task of the approval that an id names.
func ApprovalTask(id string) string {
	task, _, _ := strings.Cut(id, ".")
	return task
}

// approvalLog notes which approvals begin and end by one decision.
type approvalLog struct {
	changes  []Approval
	answered *Step // the one that just ends by an answer
	by       string
	comment  string
	action   string
}

// noteOpened notes one that waits from now on.
func (l *approvalLog) noteOpened(st *Step) {
	if l != nil {
		l.addChange(Approval{Address: st.Address(), Key: st.AwaitedKey(), Title: titleOf(st.Node.Params), Since: st.waitsSince(), Due: st.Due, State: ApprovalOpen})
	}
}

// noteClosed notes one that waits no longer.
func (l *approvalLog) noteClosed(st *Step, at int64) {
	if l == nil {
		return
	}
	a := Approval{Address: st.Address(), Key: st.AwaitedKey(), Title: titleOf(st.Node.Params), Since: st.waitsSince(), Due: st.Due, State: ApprovalOver, EndedAt: at}
	if l.answered == st {
		a.State, a.By, a.Comment, a.Action = ApprovalAnswered, l.by, l.comment, l.action
	}
	l.addChange(a)
}

func (l *approvalLog) addChange(a Approval) { l.changes = append(l.changes, a) }

// MergeApprovals adds changes to those before that are stored with them: of each approval the last
// one counts.
func MergeApprovals(list []Approval, changes ...Approval) []Approval {
	if len(changes) == 0 {
		return list
	}
	at := make(map[Address]int, len(list)+len(changes))
	for i := range list {
		at[list[i].Address] = i
	}
	for _, a := range changes {
		i, there := at[a.Address]
		if !there {
			at[a.Address] = len(list)
			list = append(list, a)
			continue
		}
		list[i] = a
	}
	return list
}

// Approvals are those that a task waits for.
func (s *State) Approvals() (list []Approval) {
	l := approvalLog{}
	for _, st := range s.waits.steps {
		if st.waitsFor == WaitApproval {
			l.noteOpened(st)
		}
	}
	return l.changes
}

// answerApproval answers one approval, and no other that waits for the same key elsewhere: it sets
// the key in the scope that asks.
func (d *decider) answerApproval(c Answer) error {
	st := d.s.activeStep(c.Address)
	if st == nil || st.waitsFor != WaitApproval {
		return Errorf(Conflict, "nobody waits for this decision any longer")
	}
	switch {
	case len(c.By) > MaxName || !IsText(c.By):
		return Errorf(Invalid, "who answers is UTF-8 text of at most %d bytes", MaxName)
	case len(c.Comment) > MaxComment || !IsText(c.Comment):
		return Errorf(Invalid, "a comment is UTF-8 text of at most %d bytes", MaxComment)
	}
	value, err := st.Node.answerValue(c)
	if err != nil {
		return err
	}
	if strings.ContainsAny(st.AwaitedKey(), "$[") {
		return Errorf(Invalid, "the approval waits for %s, which no answer can set", st.AwaitedKey())
	}
	e := Event{Type: SignalReceived, Scope: c.Scope, Node: c.Node, Visit: c.Visit, By: c.By, Note: c.Comment}
	e.Key, e.Output = st.Placed(value)
	if err := checkSharedKey(e.Key); err != nil {
		return err
	}
	if err := d.limits.checkValue("the answer", e.Output); err != nil {
		return err
	}
	if err := d.fillSharedPath(st.scope, &e, "the answer"); err != nil {
		return err
	}
	d.approvals.by, d.approvals.comment = c.By, c.Comment
	d.emitEvent(e)
	d.wakeStep(st)
	d.wakeWaiting()
	d.approvals.by, d.approvals.comment = "", "" // an approval that is asked for behind this one is not this answer's
	return nil
}

// Placed is what to signal so that a step finds a value where it looks for it: the key, and the
// value; with profile pocketflow, which has no paths as keys, what is there with the value in its
// place.
func (st *Step) Placed(v json.RawMessage) (key string, placed json.RawMessage) {
	key, rest, nested := strings.Cut(st.AwaitedKey(), ".")
	if !nested || !st.scope.Plan.Pocketflow {
		return st.AwaitedKey(), v
	}
	return key, st.scope.withNestedField(st.scope.Shared[key], strings.Split(rest, "."), v)
}

// withNestedField is an object with a field of it, or of an object in it, set. What is no object
// gives way to one.
func (sc *Scope) withNestedField(obj json.RawMessage, fields []string, v json.RawMessage) json.RawMessage {
	obj = sc.openValue(obj)
	if len(fields) > 1 {
		inner, _ := expr.Field(obj, fields[0])
		v = sc.withNestedField(inner, fields[1:], v)
	}
	return expr.Merge(obj, append(append(append(expr.AppendQuote([]byte{'{'}, fields[0]), ':'), v...), '}'))
}
