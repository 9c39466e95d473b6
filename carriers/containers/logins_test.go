package containers

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
)

func loginFile(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func as(name, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(name + ":" + password))
}

func TestAnImageIsPulledWithTheOperatorsLogin(t *testing.T) {
	file := loginFile(t, `{"auths": {"https://index.docker.io/v1/": {"auth": "`+as("hub",
		"one")+`"}, "quay.io": {"auth": "`+as("quay", "a:b")+`"},
		"quay.io/team": {"auth": "`+as("team", "three")+`"}, "localhost:5000": {"identitytoken": "four"}, "broken.io": {"auth": "secret"}}, "credsStore": "x"}`)
	for image, want := range map[string][]string{
		"busybox":                       {"docker.io", "hub", "one", ""},
		"team/x:1":                      {"docker.io", "hub", "one", ""},
		"docker.io/library/busybox":     {"docker.io", "hub", "one", ""},
		"quay.io/other/x":               {"quay.io", "quay", "a:b", ""},
		"quay.io/team/x@sha256:0":       {"quay.io", "team", "three", ""},
		"quay.io/teams/x":               {"quay.io", "quay", "a:b", ""},
		"localhost:5000/x:1":            {"localhost:5000", "", "", "four"},
		"example.com/quay.io/team/x":    nil,
		"quay.io.example.com/team/x:v1": nil,
	} {
		header, err := registryLogins(file).headerFor(image)
		require.NoError(t, err, image)
		if want == nil {
			require.Empty(t, header, image)
			continue
		}
		text, err := base64.URLEncoding.DecodeString(header)
		require.NoError(t, err)
		var got map[string]string
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want, []string{got["serveraddress"], got["username"], got["password"], got["identitytoken"]}, image)
	}
	_, err := registryLogins(file).headerFor("broken.io/x")
	require.ErrorContains(t, err, "that of broken.io has neither auth")
	require.NotContains(t, err.Error(), "secret")
	header, err := registryLogins("").headerFor("quay.io/x")
	require.NoError(t, err)
	require.Empty(t, header)
}

func TestARegistryLoginIsSentWithImagePullsOnly(t *testing.T) {
	h := &fakeHost{}
	s := h.on(t, Options{Store: "s", Logins: loginFile(t, `{"auths": {"quay.io": {"auth": "`+as("me", "hidden")+`"}}}`)})
	sent := ""
	h.answer(map[string]http.HandlerFunc{"POST /images/create": func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("X-Registry-Auth")
		says(http.StatusUnauthorized, `{"message":"no: `+sent+`"}`)(w, r)
	}})
	report := s.Carry(t.Context(), *jobOf(flow.Program{}, flow.Container{Image: "quay.io/x", Pull: flow.PullAlways}))
	require.NotEmpty(t, sent)
	require.Contains(t, report.Error, "cannot be fetched")
	require.NotContains(t, report.Error, sent)
}

func TestUnreadableLoginsFailAtStart(t *testing.T) {
	for file, want := range map[string]string{loginFile(t, "{"): "is not like Docker's config.json",
		filepath.Join(t.TempDir(), "none"): "no such file"} {
		_, err := New(Options{Allow: true, Host: "tcp://127.0.0.1:1", Logins: file})
		require.ErrorContains(t, err, want)
	}
}
