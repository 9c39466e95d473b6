package flow

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// ApprovalState is the state of an approval.
type ApprovalState string

// States of an approval.
const (
	ApprovalOpen     ApprovalState = "open"
	ApprovalAnswered ApprovalState = "answered"
	// ApprovalEnded means that the approval closed without a decision: its timeout passed, the task
	// ended, or the task took another path.
	ApprovalEnded ApprovalState = "ended"
)

// Approval is a decision that a task requests from a person. A task may wait for several at once.
type Approval struct {
	Address        // address of the step
	Key     string // key of shared that an answer sets
	Title   string
	Since   int64
	Due     int64 // deadline; 0 if there is none
	State   ApprovalState

	EndedAt int64 // 0 while the approval is open
	By      string
	Comment string
	Action  string // action of the answer; "" if the answer is a value without an action
}

// MaxComment is the maximum length of the comment of an answer, in bytes.
const MaxComment = 2000

// maxSpelledPlace is the number of bytes up to which the id of an approval contains its place in
// full.
const maxSpelledPlace = 150

// ApprovalID returns an id of an approval that is unique across tasks. Its characters are safe in a
// URL. The id of a long place contains its hash, because scopes can be nested deeply and an id has
// to fit into an index.
func ApprovalID(task string, at Address) string {
	place := []byte(at.Scope + "\n" + at.Node)
	told := base64.RawURLEncoding.EncodeToString(place)
	if len(place) > maxSpelledPlace {
		sum := sha256.Sum256(place)
		told = "~" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return task + "." + strconv.Itoa(at.Visit) + "." + told
}

// ApprovalTask returns the task of an approval by the id of the approval.
func ApprovalTask(id string) string {
	task, _, _ := strings.Cut(id, ".")
	return task
}

// approvalLog records the approvals that open and close during one decision.
type approvalLog struct {
	changes  []Approval
	answered *Step // the step that the current answer ends; nil if none
	by       string
	comment  string
	action   string
}

// noteOpened records an approval that waits from now on.
func (l *approvalLog) noteOpened(st *Step) {
	if l != nil {
		l.addChange(Approval{Address: st.Address(), Key: st.AwaitedKey(),
			Title: titleOf(st.Node.Params), Since: st.waitsSince(), Due: st.Due, State: ApprovalOpen})
	}
}

// noteClosed records an approval that no longer waits for an answer.
func (l *approvalLog) noteClosed(st *Step, at int64) {
	if l == nil {
		return
	}
	a := Approval{Address: st.Address(), Key: st.AwaitedKey(), Title: titleOf(st.Node.Params),
		Since: st.waitsSince(), Due: st.Due, State: ApprovalEnded, EndedAt: at}
	if l.answered == st {
		a.State, a.By, a.Comment, a.Action = ApprovalAnswered, l.by, l.comment, l.action
	}
	l.addChange(a)
}

func (l *approvalLog) addChange(a Approval) { l.changes = append(l.changes, a) }

// MergeApprovals appends changes to approvals that are stored already. For each approval, only the
// last change stays.
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

// Approvals returns the approvals that the task waits for.
func (s *State) Approvals() (list []Approval) {
	l := approvalLog{}
	for _, st := range s.waits.steps {
		if st.waitsFor == WaitApproval {
			l.noteOpened(st)
		}
	}
	return l.changes
}

// answerApproval answers one approval by setting its key in the scope that asks. Other approvals
// that wait for the same key elsewhere stay open.
func (d signalDecider) answerApproval(c Answer) error {
	st := d.s.activeStep(c.Address)
	if st == nil || st.waitsFor != WaitApproval {
		return Errorf(Conflict, "the task no longer waits for this decision")
	}
	switch {
	case len(c.By) > MaxName || !IsText(c.By):
		return Errorf(Invalid, "the name of the person who answers must be UTF-8 text of at most %d bytes", MaxName)
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
	d.stepPart().wakeStep(st)
	d.wakeWaiting()
	// an approval that opens later in this decision must not get this answer's author and comment
	d.approvals.by, d.approvals.comment = "", ""
	return nil
}

// Placed returns the key and value of a signal that gives the step the value v. The pocketflow
// profile has no paths as keys. With that profile, Placed returns the whole current value with v
// set inside.
func (st *Step) Placed(v json.RawMessage) (key string, placed json.RawMessage) {
	key, rest, nested := strings.Cut(st.AwaitedKey(), ".")
	if !nested || !st.scope.Plan.Pocketflow {
		return st.AwaitedKey(), v
	}
	return key, st.scope.withNestedField(st.scope.Shared[key], strings.Split(rest, "."), v)
}

// withNestedField returns obj with one field set to v, possibly inside nested objects. A value on
// the way that is not an object is replaced by an object.
func (sc *Scope) withNestedField(obj json.RawMessage, fields []string, v json.RawMessage) json.RawMessage {
	obj = sc.openValue(obj)
	if len(fields) > 1 {
		inner, _ := expr.Field(obj, fields[0])
		v = sc.withNestedField(inner, fields[1:], v)
	}
	return expr.Merge(obj, append(append(append(expr.AppendQuote([]byte{'{'}, fields[0]), ':'), v...), '}'))
}
