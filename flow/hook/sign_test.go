package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// The example of https://www.standardwebhooks.com, as its libraries test themselves.
func TestTheExampleOfStandardWebhooksIsSigned(t *testing.T) {
	h := header("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
		"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	s, err := Read(Standard, "", h.Values)
	require.NoError(t, err)
	require.True(t, s.By("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", []byte(`{"test": 2432232314}`)))
	require.False(t, s.By("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", []byte(`{"test": 2432232315}`)))
}

// The example of GitHub's documentation.
func TestTheExampleOfGitHubIsSigned(t *testing.T) {
	s, err := Read(GitHub, "", header("X-Hub-Signature-256",
		"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17").Values)
	require.NoError(t, err)
	require.True(t, s.By("It's a Secret to Everybody", []byte("Hello, World!")))
	require.False(t, s.By("It's a Secret to Nobody", []byte("Hello, World!")))
	require.Empty(t, s.Late(time.Unix(1, 0)))
}

func TestAnyOfSeveralSignaturesMayBeValid(t *testing.T) {
	right := base64.StdEncoding.EncodeToString(mac("key", "a.1700000000.body"))
	s, err := Read("", "", header("webhook-id", "a", "webhook-timestamp", "1700000000",
		"webhook-signature", "v1a,xyz v1,YQ== v1,"+right).Values)
	require.NoError(t, err)
	require.True(t, s.By("key", []byte("body")))
	list := "t=1700000000, v0=00, v1=00, v1=" + hex.EncodeToString(mac("key", "1700000000.body"))
	s, err = Read(Stripe, "x-mine", header("X-Mine", list).Values)
	require.NoError(t, err)
	require.True(t, s.By("key", []byte("body")))
}

func TestHeadersWithoutASignatureAreRejected(t *testing.T) {
	good := base64.StdEncoding.EncodeToString(mac("key", ""))
	hexed := hex.EncodeToString(mac("key", ""))
	for name, tt := range map[string]struct {
		scheme string
		header http.Header
	}{
		"an unknown scheme": {"other", header()},
		"no id":             {Standard, header("webhook-timestamp", "1", "webhook-signature", "v1,"+good)},
		"two ids": {Standard, header("webhook-id", "a", "webhook-id", "b",
			"webhook-timestamp", "1", "webhook-signature", "v1,"+good)},
		"an id with a dot": {Standard, header("webhook-id", "a.1", "webhook-timestamp", "1",
			"webhook-signature", "v1,"+good)},
		"an id with a blank": {Standard, header("webhook-id", "a 1", "webhook-timestamp", "1",
			"webhook-signature", "v1,"+good)},
		"a long id": {Standard, header("webhook-id", strings.Repeat("a", 201),
			"webhook-timestamp", "1", "webhook-signature", "v1,"+good)},
		"a time with a sign": {Standard, header("webhook-id", "a", "webhook-timestamp", "+1",
			"webhook-signature", "v1,"+good)},
		"a time with a zero": {Standard, header("webhook-id", "a", "webhook-timestamp", "01",
			"webhook-signature", "v1,"+good)},
		"a time without end": {Standard, header("webhook-id", "a", "webhook-timestamp",
			"99999999999999999999", "webhook-signature", "v1,"+good)},
		"another version": {Standard, header("webhook-id", "a", "webhook-timestamp", "1",
			"webhook-signature", "v2,"+good)},
		"too many signatures": {Standard, header("webhook-id", "a", "webhook-timestamp", "1",
			"webhook-signature", strings.Repeat("v1,"+good+" ", 11))},
		"a long header": {Standard, header("webhook-id", "a", "webhook-timestamp", "1",
			"webhook-signature", "v1,"+good+strings.Repeat(" ", 5000))},
		"no hexadecimal":           {GitHub, header("X-Hub-Signature-256", "sha256=xyz")},
		"the old hash":             {GitHub, header("X-Hub-Signature-256", "sha1="+hexed)},
		"no time":                  {Stripe, header("Stripe-Signature", "v1="+hexed)},
		"two times":                {Stripe, header("Stripe-Signature", "t=1,t=2,v1="+hexed)},
		"a test signature alone":   {Stripe, header("Stripe-Signature", "t=1,v0="+hexed)},
		"a header of another name": {Stripe, header("X-Signature", "t=1,v1="+hexed)},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(tt.scheme, "", tt.header.Values)
			require.Error(t, err)
			require.False(t, s.By("key", nil))
		})
	}
}

func TestTheIDOfADeliveryComesFromSignedContent(t *testing.T) {
	read := func(scheme string, pairs ...string) *Signed {
		s, err := Read(scheme, "", header(pairs...).Values)
		require.NoError(t, err)
		return s
	}
	hub := read(GitHub, "X-Hub-Signature-256", "sha256=00")
	require.Equal(t, hub.ID([]byte("a")), read(GitHub, "X-Hub-Signature-256", "sha256=01", "X-GitHub-Delivery", "2").ID([]byte("a")))
	require.NotEqual(t, hub.ID([]byte("a")), hub.ID([]byte("b")))
	require.NotEqual(t, read(Stripe, "Stripe-Signature", "t=1,v1=00").ID(nil), read(Stripe, "Stripe-Signature", "t=2,v1=00").ID(nil))
	require.Equal(t, "msg_1", read(Standard, "webhook-id", "msg_1", "webhook-timestamp", "1",
		"webhook-signature", "v1,AA==").ID([]byte("a")))
}

func TestADeliveryIsRememberedWhileItMayBeRepeated(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s, err := Read(Stripe, "", header("Stripe-Signature", "t=1700000300,v1=00").Values)
	require.NoError(t, err)
	require.Empty(t, s.Late(now))
	require.NotEmpty(t, s.Late(s.Until(now)), "what is forgotten comes too late")
	require.NotEmpty(t, s.Late(now.Add(-time.Second)))
}

func FuzzHeadersAreReadWithoutHarm(f *testing.F) {
	for _, scheme := range Schemes {
		f.Add(scheme, "msg_1", "1700000000", "v1,YQ==", "body")
		f.Add(scheme, "", "", "t=1700000000,v1=00", "")
		f.Add(scheme, "a.b", "-1", "sha256=00", "\x00")
	}
	f.Fuzz(func(t *testing.T, scheme, id, at, signature, body string) {
		h := header("webhook-id", id, "webhook-timestamp", at, "webhook-signature", signature,
			"stripe-signature", signature, "x-hub-signature-256", signature)
		s, err := Read(scheme, "", h.Values)
		require.Equal(t, err == nil, s != nil)
		require.False(t, s.By("a secret that nobody has used", []byte(body)), "nobody can sign without it")
		if err != nil {
			return
		}
		require.NotEmpty(t, s.ID([]byte(body)))
		require.LessOrEqual(t, len(s.ID([]byte(body))), maxID)
		now := time.Unix(1_700_000_000, 0)
		if s.Late(now) == "" && s.at != "" {
			require.NotEmpty(t, s.Late(now.Add(2*Tolerance+time.Second)))
		}
		s.macs = append(s.macs, s.computeMAC("secret", []byte(body)))
		require.True(t, s.By("secret", []byte(body)))
	})
}
