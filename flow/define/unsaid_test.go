package define_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/define"
)

func TestWhatADefinitionLeavesUnsaidIsWrittenIntoItsText(t *testing.T) {
	follow := define.PocketFlow
	for _, tt := range []struct {
		text, want string
		unsaid     define.Unsaid
		back       bool // cutting it out gives the text again
	}{
		{`{"start":"a","nodes":{}}`, `{"on_error":"fail","on_missing":"fail", "start":"a","nodes":{}}`, define.Unsaid{}, true},
		{"\n { \"start\" : \"a\" , \"n\":1.50}\n", "\n {\"on_error\":\"follow\",\"on_missing\":\"coerce\",  \"start\" : \"a\" , \"n\":1.50}\n", follow, true},
		{`{"on_error":"follow","start":"a","on_missing":"fail"}`, `{"on_error":"follow","start":"a","on_missing":"fail"}`, define.Unsaid{}, true},
		{`{"on_error":"follow","start":"a"}`, `{"on_missing":"fail", "on_error":"follow","start":"a"}`, define.Unsaid{}, true},
		{`{"on_error":"follow","start":"a"}`, `{"on_missing":"coerce", "on_error":"follow","start":"a"}`, follow, true},
		{`{"on_missing":"coerce","start":"a"}`, `{"on_error":"follow", "on_missing":"coerce","start":"a"}`, follow, true},
		{`{"start":"a","on_missing":"fail","on_error": null}`, `{"start":"a","on_missing":"fail","on_error": "fail"}`, define.Unsaid{}, false},
		{`{"on_missing":"fail","start":"a","On_Error": ""}`, `{"on_missing":"fail","start":"a","On_Error": "follow"}`, follow, false},
	} {
		d, err := define.Parse([]byte(tt.text))
		require.NoError(t, err, tt.text)
		got := tt.unsaid.Write(d, []byte(tt.text))
		require.Equal(t, tt.want, string(got))
		written, err := define.Parse(got)
		require.NoError(t, err)
		require.Equal(t, []string{d.OnError, d.OnMissing}, []string{written.OnError, written.OnMissing})
		require.NotContains(t, []string{d.OnError, d.OnMissing}, "")
		require.Equal(t, string(got), string(tt.unsaid.Write(written, got)), "it is said once")
		if tt.back {
			require.Equal(t, tt.text, string(tt.unsaid.Cut(got)))
		}
	}
}

func TestOnlyWhatWasWrittenIsCutOut(t *testing.T) {
	follow := define.PocketFlow
	for _, text := range []string{``, `{}`, `null`, `{"on_error":"fail", "start":"a"}`, `{"start":"on_error"}`} {
		require.Equal(t, text, string(follow.Cut([]byte(text))))
	}
}
