package types_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/types"
)

func TestAFormChecksValues(t *testing.T) {
	for name, tt := range map[string]struct{ form, fits, not, told string }{
		"a word": {`"int"`, `3`, `"three"`, `output: is text "three", an int was declared`},
		"a list": {`["text"]`, `["a"]`, `["a",1]`, `output[1]: is 1, text was declared`},
		"an object": {`{"type":"object","fields":{"id":"int","at":"date"}}`,
			`{"id":1,"at":"2026-02-03"}`, `{"id":1}`, `output.at: is missing`},
		"an object, not more":  {`{"type":"object","fields":{"id":"int"}}`, `{"id":1}`, `{"id":1,"x":2}`, `output.x`},
		"one that may be null": {`"optional int"`, `null`, `"x"`, `output: is text "x"`},
		"a JSON Schema":        {`{"type":"string","maxLength":2}`, `"ab"`, `"abc"`, `output: has 3 characters`},
	} {
		t.Run(name, func(t *testing.T) {
			form, problems := types.ReadForm(json.RawMessage(tt.form))
			require.Empty(t, problems)
			require.Empty(t, form.Check(json.RawMessage(tt.fits)))
			require.Contains(t, form.Check(json.RawMessage(tt.not)).Below("output"), tt.told)
		})
	}
}

func TestAMissingOrInvalidFormIsNil(t *testing.T) {
	form, problems := types.ReadForm(nil)
	require.Nil(t, form)
	require.Empty(t, problems)
	require.Zero(t, form.Size())
	form, problems = types.ReadForm(json.RawMessage(`"boolian"`))
	require.Nil(t, form)
	require.Contains(t, problems[0].Msg, "unknown type")
}

func TestTimesAreTexts(t *testing.T) {
	for text, of := range map[string][]string{
		"2026-02-28":                {"date"},
		"2026-13-01":                nil,
		"2026-02-28T23:59:59":       {"datetime_notz"},
		"2026-02-28 23:59:59.5":     {"datetime_notz"},
		"2026-02-28T23:59:59Z":      {"datetime_tz", "datetime_utc"},
		"2026-02-28T23:59:59+02:00": {"datetime_tz"},
		"2026-02-28T24:00:00Z":      nil,
	} {
		var is []string
		for _, name := range []string{"date", "datetime_notz", "datetime_tz", "datetime_utc"} {
			if types.IsTime(name, text) {
				is = append(is, name)
			}
			form, problems := types.ReadForm(json.RawMessage(`"` + name + `"`))
			require.Empty(t, problems)
			require.Equal(t, types.IsTime(name, text), len(form.Check(json.RawMessage(`"`+text+`"`))) == 0)
		}
		require.Equal(t, of, is, text)
	}
}
