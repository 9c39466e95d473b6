// Package duration parses durations in the usual notation: 90s, 1h30m, 1d12h, 2w. It is the only
// grammar for definitions, schedules, command lines, requests and tests of flows.
package duration

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Longest is the longest duration that Parse accepts.
const Longest = 100 * 365 * 24 * time.Hour

// unitLengths maps the names of units to their lengths.
var unitLengths = map[string]time.Duration{
	"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second,
	"ms": time.Millisecond, "us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "ns": time.Nanosecond,
}

// Parse parses a duration: numbers with units, such as 1d12h or 1.5s, or 0. The resolution is one
// millisecond. Parse rejects finer durations, negative durations, and those above 100 years.
func Parse(text string) (time.Duration, error) {
	switch rest := strings.TrimPrefix(text, "-"); {
	case text == "0":
		return 0, nil
	case rest != text && startsWithDigit(rest):
		return 0, fmt.Errorf("%.40q is negative: write a duration from 0 on, such as 30s", text)
	}
	sum, rest := new(big.Rat), text
	for more := true; more; more = rest != "" {
		part, after, ok := readPart(rest)
		if !ok {
			return 0, fmt.Errorf("%.40q is no duration: write it like 250ms, 90s, 1h30m, 1d12h or 2w", text)
		}
		sum.Add(sum, part)
		rest = after
	}
	switch {
	case sum.Cmp(new(big.Rat).SetInt64(int64(Longest))) > 0:
		return 0, fmt.Errorf("%.40q is longer than 100 years, the longest duration", text)
	case !new(big.Rat).Quo(sum, new(big.Rat).SetInt64(int64(time.Millisecond))).IsInt():
		return 0, fmt.Errorf("%.40q is finer than a millisecond, the smallest part that is kept: write it like 250ms", text)
	}
	return time.Duration(sum.Num().Int64()), nil
}

// maxDigits is the maximum length of a number.
const maxDigits = 30

// readPart parses the number and the unit at the start of a text. rest is the remaining text.
func readPart(text string) (part *big.Rat, rest string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end <= 0 || end > maxDigits || strings.Trim(text[:end], ".") == "" {
		return nil, "", false
	}
	number, ok := new(big.Rat).SetString(text[:end])
	if !ok {
		return nil, "", false
	}
	name := text[end:]
	if i := strings.IndexFunc(name, func(r rune) bool { return r == '.' || r >= '0' && r <= '9' }); i >= 0 {
		name = name[:i]
	}
	unit, ok := unitLengths[name]
	return number.Mul(number, new(big.Rat).SetInt64(int64(unit))), text[end+len(name):], ok
}

func startsWithDigit(text string) bool {
	return text != "" && (text[0] >= '0' && text[0] <= '9' || text[0] == '.')
}
