package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// Address names a place in a task: an attempt of a unit within a visit of a node in a scope.
// Fields that do not apply are zero (Attempt 0 names the unit, Visit 0 the scope).
type Address struct {
	Scope   string // "" for the task's root; see childScope
	Node    string
	Visit   int // from 1
	Unit    int // from 0
	Attempt int // from 1
}

// Compare defines a total order of addresses.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Node, b.Node),
		cmp.Compare(a.Visit, b.Visit), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Attempt, b.Attempt))
}

// childScope returns the path of the scope inside a visit of a node: "order#1", "order#1/ship#2".
func childScope(scope, node string, visit int) string {
	name := scopeEscaper.Replace(node) + "#" + strconv.Itoa(visit)
	if scope == "" {
		return name
	}
	return scope + "/" + name
}

// ChildScope returns the path of the scope below a step.
func ChildScope(step Address) string { return childScope(step.Scope, step.Node, step.Visit) }

// ScopeKey returns the path of the scope inside a node of a plan, which is the path of a task's
// scope without the visits.
func ScopeKey(scope, node string) string {
	name := scopeEscaper.Replace(node)
	if scope == "" {
		return name
	}
	return scope + "/" + name
}

// scopeEscaper escapes the three characters that structure a path. The key of a node may contain
// any character.
var scopeEscaper = strings.NewReplacer("%", "%25", "/", "%2F", "#", "%23")

var scopeUnescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%23", "#")

// ParentOf splits the path of a scope and returns the step to which it belongs. It returns false
// for the root.
func ParentOf(scope string) (Address, bool) {
	if scope == "" {
		return Address{}, false
	}
	parent, last := "", scope
	if i := strings.LastIndexByte(scope, '/'); i >= 0 {
		parent, last = scope[:i], scope[i+1:]
	}
	name, visit, _ := strings.Cut(last, "#")
	n, err := strconv.Atoi(visit)
	if err != nil {
		return Address{}, false
	}
	return Address{Scope: parent, Node: scopeUnescaper.Replace(name), Visit: n}, true
}

// Step returns the step of an address as a path from the task's root: the nodes whose scopes
// contain it, then its own node.
func (a Address) Step() string {
	path := a.Node
	if a.Scope == "" {
		return path
	}
	for parent, ok := ParentOf(a.Scope); ok; parent, ok = ParentOf(parent.Scope) {
		path = parent.Node + "/" + path
	}
	return path
}

// JobID returns an id of an attempt that is unique across tasks. Its characters are safe in the
// path and query of a URL.
func JobID(task string, a Address) string {
	var room [160]byte // most ids are shorter
	b, _, _ := appendJobID(room[:0], task, a)
	return string(b)
}

// appendJobID appends the id of an attempt, in the form task.visit.unit.attempt.place, and returns
// where the attempt and the place begin.
func appendJobID(b []byte, task string, a Address) (id []byte, attempt, place int) {
	b = append(b, task...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Visit), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Unit), 10)
	b = append(b, '.')
	attempt = len(b)
	b = strconv.AppendInt(b, int64(a.Attempt), 10)
	b = append(b, '.')
	var names [64]byte // most places are shorter
	return base64.RawURLEncoding.AppendEncode(b, append(append(append(names[:0], a.Scope...), '\n'), a.Node...)), attempt, len(b)
}

// maxSpelledKey is the length up to which the key of a unit contains its place in full. Many
// services limit idempotency keys to 255 characters.
const maxSpelledKey = 200

// UnitKey returns a key of a unit that is unique across tasks and the same for all attempts of the
// unit. A service that receives it can recognize a repetition. Its characters are safe in headers,
// paths and queries.
func UnitKey(task string, a Address) string {
	var room [160]byte // most keys are shorter
	var names [64]byte
	b := append(room[:0], task...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Visit), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Unit), 10)
	b = append(b, '.')
	place := append(append(append(names[:0], a.Scope...), '\n'), a.Node...)
	if len(b)+base64.RawURLEncoding.EncodedLen(len(place)) > maxSpelledKey {
		sum := sha256.Sum256(place)
		place = sum[:]
	}
	return string(base64.RawURLEncoding.AppendEncode(b, place))
}

// jobIDAndUnitKey returns JobID and UnitKey as parts of one string.
func jobIDAndUnitKey(task string, a Address) (id, key string) {
	var room [192]byte // most ids and keys are shorter together
	b, attempt, place := appendJobID(room[:0], task, a)
	end := len(b)
	if attempt+end-place > maxSpelledKey {
		return string(b), UnitKey(task, a)
	}
	b = append(append(b, b[:attempt]...), b[place:end]...)
	both := string(b)
	return both[:end], both[end:]
}

// ParseJobID parses an id that JobID returned.
func ParseJobID(id string) (task string, a Address, err error) {
	bad := func() (string, Address, error) {
		return "", Address{}, &Error{Kind: NotFound, Msg: fmt.Sprintf("no job has the id %.80q", id)}
	}
	parts := strings.Split(id, ".")
	if len(parts) != 5 || parts[0] == "" {
		return bad()
	}
	var n [3]int
	for i := range n {
		if n[i], err = strconv.Atoi(parts[1+i]); err != nil || n[i] < 0 {
			return bad()
		}
	}
	names, err := base64.RawURLEncoding.DecodeString(parts[4])
	if err != nil {
		return bad()
	}
	scope, node, ok := strings.Cut(string(names), "\n")
	if !ok {
		return bad()
	}
	a = Address{Scope: scope, Node: node, Visit: n[0], Unit: n[1], Attempt: n[2]}
	if JobID(parts[0], a) != id { // another spelling of the same numbers is not an id
		return bad()
	}
	return parts[0], a, nil
}

// String returns the address in a form for logs.
func (a Address) String() string {
	b := []byte(a.Scope)
	if len(b) > 0 {
		b = append(b, '/')
	}
	b = append(b, a.Node...)
	for _, part := range []struct {
		mark byte
		n    int
	}{{'#', a.Visit}, {'.', a.Unit}, {'!', a.Attempt}} {
		b = strconv.AppendInt(append(b, part.mark), int64(part.n), 10)
	}
	return string(b)
}
