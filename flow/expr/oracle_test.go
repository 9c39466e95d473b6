package expr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The oracle implements the same rules over decoded values, as simply as possible. Property tests
// and fuzzing compare the package with it.

// oracle decodes numbers as float64; it returns false if v is not JSON, or has a larger number.
func oracle(v []byte) (any, bool) {
	var out any
	err := json.Unmarshal(v, &out)
	return out, err == nil
}

var oracleSegment = regexp.MustCompile(`^(?s)([^\[]+)(?:\[([0-9]+)\].*)?$`)

func oraclePath(v any, path string) any {
	for _, text := range strings.Split(path, ".") {
		if text == "" {
			continue
		}
		parts := oracleSegment.FindStringSubmatch(text)
		if parts == nil {
			return nil
		}
		object, _ := v.(map[string]any)
		v = object[parts[1]]
		if parts[2] == "" {
			continue
		}
		array, _ := v.([]any)
		i, err := strconv.Atoi(parts[2])
		if err != nil || i >= len(array) {
			return nil
		}
		v = array[i]
	}
	return v
}

func oracleOperand(v, params any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	// all three see the same value
	for _, prefix := range []string{"$params.", "$shared.", "$input"} {
		if path, ok := strings.CutPrefix(s, prefix); ok {
			return oraclePath(params, path)
		}
	}
	return s
}

func oracleEval(v, params any) bool {
	object, _ := v.(map[string]any)
	for name, operand := range object {
		if !oracleOperator(name, operand, params) {
			return false
		}
	}
	return len(object) > 0
}

func oracleMember(v, params any) bool {
	if _, ok := v.(map[string]any); ok {
		return oracleEval(v, params)
	}
	return oracleEqual(oracleOperand(v, params), true)
}

func oracleOperator(name string, operand, params any) bool {
	list, isList := operand.([]any)
	switch name {
	case "and", "or":
		count := 0
		for _, m := range list {
			if oracleMember(m, params) {
				count++
			}
		}
		return isList && (name == "and" && count == len(list) || name == "or" && count > 0)
	case "not":
		return !oracleMember(operand, params)
	case "exists":
		_, ok := operand.(string)
		return ok && oracleOperand(operand, params) != nil
	}
	if len(list) != 2 {
		return false
	}
	a, b := oracleOperand(list[0], params), oracleOperand(list[1], params)
	switch name {
	case "eq":
		return oracleEqual(a, b)
	case "ne":
		return !oracleEqual(a, b)
	case "gt":
		return oracleCompare(a, b) > 0
	case "lt":
		return oracleCompare(a, b) < 0
	case "ge":
		return oracleCompare(a, b) >= 0
	case "le":
		return oracleCompare(a, b) <= 0
	case "in":
		return oracleHolds(b, a)
	case "contains":
		return oracleHolds(a, b)
	}
	return false
}

func oracleNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

func oracleText(v any) string {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%g", v)
	case string:
		return v
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func oracleEqual(a, b any) bool {
	x, ok := oracleNumber(a)
	y, both := oracleNumber(b)
	if ok && both {
		return x == y
	}
	return oracleText(a) == oracleText(b)
}

func oracleCompare(a, b any) int {
	x, ok := oracleNumber(a)
	y, both := oracleNumber(b)
	switch {
	case !ok || !both:
		return strings.Compare(oracleText(a), oracleText(b))
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func oracleHolds(collection, value any) bool {
	switch c := collection.(type) {
	case string:
		s, ok := value.(string)
		return ok && strings.Contains(c, s)
	case []any:
		for _, element := range c {
			if oracleEqual(element, value) {
				return true
			}
		}
	}
	return false
}
