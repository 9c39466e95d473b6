package definition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition"
)

func TestTheProfileIsWrittenIntoATextWithoutOne(t *testing.T) {
	for _, tt := range []struct {
		text, profile, want string
		reversible          bool // CutProfile restores the text
	}{
		{`{"start":"a","nodes":{}}`, definition.ProfileTroupe, `{"profile":"troupe", "start":"a","nodes":{}}`, true},
		{"\n { \"start\" : \"a\" , \"n\":1.50}\n", definition.ProfilePocketflow,
			"\n {\"profile\":\"pocketflow\",  \"start\" : \"a\" , \"n\":1.50}\n", true},
		{`{"profile":"pocketflow","start":"a"}`, definition.ProfileTroupe, `{"profile":"pocketflow","start":"a"}`, true},
		{`{"start":"a","profile": null}`, definition.ProfileTroupe, `{"start":"a","profile": "troupe"}`, false},
		{`{"start":"a","Profile": ""}`, definition.ProfilePocketflow, `{"start":"a","Profile": "pocketflow"}`, false},
	} {
		d, err := definition.Parse([]byte(tt.text))
		require.NoError(t, err, tt.text)
		got := definition.WriteProfile(d, []byte(tt.text), tt.profile)
		require.Equal(t, tt.want, string(got))
		written, err := definition.Parse(got)
		require.NoError(t, err)
		require.Equal(t, d.Profile, written.Profile)
		require.NotEmpty(t, d.Profile)
		require.Equal(t, string(got), string(definition.WriteProfile(written, got, tt.profile)), "the profile is written once")
		if tt.reversible {
			require.Equal(t, tt.text, string(definition.CutProfile(got, tt.profile)))
		}
	}
}

func TestProfileOfAnEmptyDefinitionIsJSON(t *testing.T) {
	require.JSONEq(t, `{"profile":"pgflow"}`,
		string(definition.WriteProfile(&definition.Definition{}, []byte("{ }"), definition.ProfilePgflow)))
}

func TestCutProfileLeavesOtherTextsAsTheyAre(t *testing.T) {
	for _, text := range []string{``, `{}`, `null`, `{"profile":"troupe", "start":"a"}`, `{"start":"profile"}`} {
		require.Equal(t, text, string(definition.CutProfile([]byte(text), definition.ProfilePocketflow)))
	}
}
