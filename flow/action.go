package flow

import (
	"encoding/json"
	"fmt"

	"github.com/troupe-engine/troupe/flow/expr"
)

// resultAction returns the action that a node ends with: the static one, else the text in field
// action_key of its result.
func (p Post) resultAction(result json.RawMessage) string {
	if p.ActionStatic != "" || p.ActionKey == "" {
		return p.ActionStatic
	}
	return textField(result, p.ActionKey)
}

func textField(obj json.RawMessage, key string) string {
	if expr.KindOf(obj) != expr.KindObject {
		return ""
	}
	v, _ := expr.Field(obj, key)
	text, _ := expr.String(v)
	return text
}

func fieldOf(key string, value json.RawMessage) json.RawMessage {
	b := append(expr.AppendQuote([]byte{'{'}, key), ':')
	return append(append(b, orNull(value)...), '}')
}

// chooseAction returns the action of a choice: the action of the first true case, or the one that
// post gives, else the default. All cases share one budget.
func (st *Step) chooseAction(a *expr.Allowance) (string, error) {
	env := st.scope.referenceEnv(st.Params, st.Input)
	env.Allowance, env.Coerce, env.Loose = a, st.Node.Coerce, st.scope.Plan.Pocketflow
	for i := range st.Node.Cases {
		c := &st.Node.Cases[i]
		holds, err := c.evalCondition(env)
		if err != nil {
			return "", fmt.Errorf("choice_cases[%d]: %w", i, err)
		}
		if holds && c.Action != "" {
			return c.Action, nil
		}
		if holds {
			break
		}
	}
	return st.fallbackAction(), nil
}

// evalCondition returns an error if the CEL expression fails, if a referenced value is missing, or
// if the evaluation exceeds its budget.
func (c *PlanCase) evalCondition(env *expr.Env) (bool, error) {
	if c.CEL != nil {
		return c.CEL.On(env.Allowance).Bool(env.Var)
	}
	holds, err := c.Cond.Eval(env)
	if err != nil {
		err = fmt.Errorf("expression %s: %w", expr.Shorten(string(expr.Compact(c.Text))), err)
	}
	return holds, err
}

// fallbackAction returns the action of a choice when no case gives one.
func (st *Step) fallbackAction() string {
	p := st.Node.Post
	if p.ActionStatic != "" {
		return p.ActionStatic
	}
	if p.ActionKey != "" {
		if p.ActionKey == "v" {
			if text, _ := expr.String(st.scope.openValue(st.Input)); text != "" {
				return text
			}
		}
		if text, _ := expr.String(st.scope.openValue(st.scope.Shared[p.ActionKey])); text != "" {
			return text
		}
	}
	return st.Node.Default
}

// approvalAction maps the decision of an approval to an action.
func (st *Step) approvalAction(value json.RawMessage) string {
	p := st.Node.Post
	text, isText := expr.String(value)
	switch {
	case p.ActionKey != "" && p.ActionKey != "approval":
		if _, form := expr.Field(st.Node.Params, "form"); form {
			return textField(value, p.ActionKey)
		}
		return ""
	case isText && text != "":
		return text
	case expr.KindOf(value) == expr.KindBool && string(value) == "true":
		return approved
	case expr.KindOf(value) == expr.KindBool:
		return rejected
	case p.ActionKey != "":
		return ""
	default:
		return p.ActionStatic
	}
}
