package define_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow/define"
)

func TestTheProfileIsWrittenIntoATextWithoutOne(t *testing.T) {
	for _, tt := range []struct {
		text, profile, want string
		reversible          bool // CutProfile restores the text
	}{
		{`{"start":"a","nodes":{}}`, define.ProfileTroupe, `{"profile":"troupe", "start":"a","nodes":{}}`, true},
		{"\n { \"start\" : \"a\" , \"n\":1.50}\n", define.ProfilePocketflow,
			"\n {\"profile\":\"pocketflow\",  \"start\" : \"a\" , \"n\":1.50}\n", true},
		{`{"profile":"pocketflow","start":"a"}`, define.ProfileTroupe, `{"profile":"pocketflow","start":"a"}`, true},
		{`{"start":"a","profile": null}`, define.ProfileTroupe, `{"start":"a","profile": "troupe"}`, false},
		{`{"start":"a","Profile": ""}`, define.ProfilePocketflow, `{"start":"a","Profile": "pocketflow"}`, false},
	} {
		d, err := define.Parse([]byte(tt.text))
		require.NoError(t, err, tt.text)
		got := define.WriteProfile(d, []byte(tt.text), tt.profile)
		require.Equal(t, tt.want, string(got))
		written, err := define.Parse(got)
		require.NoError(t, err)
		require.Equal(t, d.Profile, written.Profile)
		require.NotEmpty(t, d.Profile)
		require.Equal(t, string(got), string(define.WriteProfile(written, got, tt.profile)), "the profile is written once")
		if tt.reversible {
			require.Equal(t, tt.text, string(define.CutProfile(got, tt.profile)))
		}
	}
}

func TestProfileOfAnEmptyDefinitionIsJSON(t *testing.T) {
	require.JSONEq(t, `{"profile":"pgflow"}`, string(define.WriteProfile(&define.Definition{}, []byte("{ }"), define.ProfilePgflow)))
}

func TestCutProfileLeavesOtherTextsAsTheyAre(t *testing.T) {
	for _, text := range []string{``, `{}`, `null`, `{"profile":"troupe", "start":"a"}`, `{"start":"profile"}`} {
		require.Equal(t, text, string(define.CutProfile([]byte(text), define.ProfilePocketflow)))
	}
}
