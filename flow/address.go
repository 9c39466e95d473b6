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
	Scope   string // "" is the task's root; see childScope
	Node    string
	Visit   int // from 1
	Unit    int // from 0
	Attempt int // from 1
}

// Compare puts addresses in an order.
func (a Address) Compare(b Address) int {
	return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Visit, b.Visit), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Attempt, b.Attempt))
}

// childScope is the path of the scope inside a visit of a node: "order#1", "order#1/ship#2".
func childScope(scope, node string, visit int) string {
	name := scopeEscaper.Replace(node) + "#" + strconv.Itoa(visit)
	if scope == "" {
		return name
	}
	return scope + "/" + name
}

// ChildScope is the path of the scope below a step.
func ChildScope(step Address) string { return childScope(step.Scope, step.Node, step.Visit) }

// ScopeKey is the path of the scope inside a node of a plan: that of a task's scope without the
// visits.
func ScopeKey(scope, node string) string {
	name := scopeEscaper.Replace(node)
	if scope == "" {
		return name
	}
	return scope + "/" + name
}

// A node's key may hold any character; the three that structure a path are escaped.
var scopeEscaper = strings.NewReplacer("%", "%25", "/", "%2F", "#", "%23")

var scopeUnescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%23", "#")

// ParentOf splits a scope's path into the step it belongs to. The root has none.
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

// Step names the step of an address as a path from the task's root: the nodes whose scopes it is
// in, and its own.
func (a Address) Step() string {
	path := a.Node
	for parent, ok := ParentOf(a.Scope); ok; parent, ok = ParentOf(parent.Scope) {
		path = parent.Node + "/" + path
	}
	return path
}

// JobID names an attempt across tasks, in characters that are safe in a URL's path and query.
func JobID(task string, a Address) string {
	var room, names [160]byte // most are shorter
	b := append(room[:0], task...)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Visit), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Unit), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(a.Attempt), 10)
	b = append(b, '.')
	place := append(append(append(names[:0], a.Scope...), '\n'), a.Node...)
	b = base64.RawURLEncoding.AppendEncode(b, place)
	return string(b)
}

// maxSpelledKey is the length up to which a unit's key spells its place out. Services that take
// idempotency keys often take no more than 255 characters.
const maxSpelledKey = 200

// UnitKey names a unit across tasks: the same for all attempts at it, and for no other. A service
// that is called with it recognizes a repetition. It has characters that are safe in headers, paths
// and queries.
func UnitKey(task string, a Address) string {
	var room, names [160]byte // most are shorter
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

// ParseJobID is the inverse of JobID.
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
	if JobID(parts[0], a) != id { // another spelling of the same numbers
		return bad()
	}
	return parts[0], a, nil
}

// String makes an address readable in logs.
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
