package definition

import (
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strings"

	"github.com/troupe-engine/troupe/flow/expr"
)

// Forms of numbers in YAML 1.2, and forms that YAML 1.1 reads differently.
var (
	yamlDecimal   = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	yamlLeading   = regexp.MustCompile(`^[-+]?0[0-9]`)
	yamlBased     = regexp.MustCompile(`^0(x[0-9a-fA-F]+|o[0-7]+)$`)
	yamlInfinite  = regexp.MustCompile(`^[-+]?\.(inf|Inf|INF|nan|NaN|NAN)$`)
	errTwoNumbers = errors.New("is one number in YAML 1.1 and another one, or a text, in YAML " +
		"1.2: put it in quotes if it is a text, or else write it " +
		"without leading zeros, underscores and 0b")
	errNoNumber = errors.New("is no number that JSON has: write a text, or null")
)

// isLongNumber reports whether a text is a number that the parser treats as a text, because no Go
// number can hold it.
func isLongNumber(text string) bool {
	raw := json.RawMessage(text)
	return yamlBased.MatchString(text) || expr.KindOf(raw) == expr.KindNumber && json.Valid(raw)
}

// yamlNumber converts a YAML number to JSON with all its digits.
func yamlNumber(text string) (json.RawMessage, error) {
	switch {
	case yamlInfinite.MatchString(text):
		return nil, errNoNumber
	case yamlBased.MatchString(text):
		n, ok := new(big.Int).SetString(text, 0)
		if !ok || len(text) > 1_000 {
			return nil, errNoNumber
		}
		return json.RawMessage(n.String()), nil
	case !yamlDecimal.MatchString(text) || yamlLeading.MatchString(text):
		return nil, errTwoNumbers
	}
	text = strings.TrimPrefix(text, "+")
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "-", rest
	}
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i:]
	}
	return json.RawMessage(sign + strings.TrimSuffix(mantissa, ".") + exponent), nil
}
