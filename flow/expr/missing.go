package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// MissingError reports that an expression uses a missing value.
type MissingError struct {
	Path string // path as written, up to the missing part
	Ask  string // expression that tests whether the value exists
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing: see that it is there, or ask %s first", e.Path, e.Ask)
}

// missingError returns the error for a reference, with the path up to the missing part.
func (r Ref) missingError(env *Env) error {
	path := strings.TrimSuffix(prefixOf(r.source), ".")
	if r.malformed {
		path = r.text
	}
	for i, s := range r.path {
		path += "." + s.String()
		if _, there := (Ref{source: r.source, path: r.path[:i+1]}).Find(env); !there {
			break
		}
	}
	return &MissingError{path, `{"exists": ` + string(Quote(path)) + `}`}
}

func prefixOf(s refSource) string {
	for _, p := range prefixes {
		if p.source == s {
			return p.prefix
		}
	}
	return ""
}

func (s pathSegment) String() string {
	if s.index == noIndex {
		return s.key
	}
	return s.key + "[" + strconv.Itoa(s.index) + "]"
}

// OrderError reports that a condition orders two values that have no order.
type OrderError struct {
	Left, Right         string // operands as written
	LeftKind, RightKind Kind
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("%s is %s and %s is %s, so neither is greater: compare numbers with numbers and texts with texts; in CEL, "+
		"double(…) makes a number of a text", e.Left, e.LeftKind, e.Right, e.RightKind)
}
