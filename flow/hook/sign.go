package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The ways in which a delivery may be signed, each by HMAC-SHA256.
const (
	Standard = "standard" // Standard Webhooks: the headers webhook-id, webhook-timestamp and webhook-signature
	GitHub   = "github"   // X-Hub-Signature-256: sha256=<hex>, over the body alone
	Stripe   = "stripe"   // Stripe-Signature: t=<seconds>,v1=<hex>
)

// Schemes are all of them.
var Schemes = []string{Standard, GitHub, Stripe}

// Bounds of what headers say.
const (
	maxHeader     = 4 << 10
	maxSignatures = 10
	maxID         = 200
)

// Tolerance is how far the time of a delivery may be from ours.
const Tolerance = 5 * time.Minute

// rememberFor is how long a delivery is that may come again with the same id later than Tolerance
// allows: senders repeat what was not answered for hours, with a new time or none.
const rememberFor = 24 * time.Hour

// Signed is what the headers of a delivery claim: nothing of it is true before By has said so.
type Signed struct {
	scheme string
	id     string   // of the delivery; "" = it is told by what was signed
	at     string   // seconds; "" = the scheme has no time
	macs   [][]byte // any of which may be the right one
}

// Read reads what headers claim. get gives the values of a header by its name in lower case. name,
// if given, is the header of the signature.
func Read(scheme, name string, get func(name string) []string) (*Signed, error) {
	switch scheme {
	case "", Standard:
		return readStandard(get)
	case GitHub:
		return readGitHub(get, orElse(name, "x-hub-signature-256"))
	case Stripe:
		return readStripe(get, orElse(name, "stripe-signature"))
	}
	return nil, fmt.Errorf("there is no scheme %.40q", scheme)
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

// singleHeader is the value of a header that comes once.
func singleHeader(get func(string) []string, name string) (string, error) {
	values := get(name)
	switch {
	case len(values) == 0:
		return "", fmt.Errorf("the header %s is missing", name)
	case len(values) > 1:
		return "", fmt.Errorf("the header %s comes more than once", name)
	case len(values[0]) > maxHeader:
		return "", fmt.Errorf("the header %s is too long", name)
	}
	return values[0], nil
}

func readStandard(get func(string) []string) (*Signed, error) {
	id, err := singleHeader(get, "webhook-id")
	if err != nil {
		return nil, err
	}
	at, err := singleHeader(get, "webhook-timestamp")
	if err != nil {
		return nil, err
	}
	list, err := singleHeader(get, "webhook-signature")
	if err != nil {
		return nil, err
	}
	s := &Signed{scheme: Standard, id: id, at: at}
	if !isID(id) {
		return nil, errors.New("the header webhook-id is no id: it has up to 200 visible characters of ASCII, none of which is a dot")
	}
	if !isTime(at) {
		return nil, errors.New("the header webhook-timestamp is no number of seconds")
	}
	for entry := range strings.FieldsSeq(list) {
		text, ok := strings.CutPrefix(entry, "v1,")
		if !ok {
			continue // of another version
		}
		if mac, err := base64.StdEncoding.DecodeString(text); err == nil {
			s.macs = append(s.macs, mac)
		}
	}
	return s.checkMACs("webhook-signature", "v1,<base64>")
}

func readGitHub(get func(string) []string, name string) (*Signed, error) {
	text, err := singleHeader(get, name)
	if err != nil {
		return nil, err
	}
	s := &Signed{scheme: GitHub}
	if text, ok := strings.CutPrefix(strings.TrimSpace(text), "sha256="); ok {
		s.addMAC(text)
	}
	return s.checkMACs(name, "sha256=<hex>")
}

func readStripe(get func(string) []string, name string) (*Signed, error) {
	list, err := singleHeader(get, name)
	if err != nil {
		return nil, err
	}
	s := &Signed{scheme: Stripe}
	for part := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case key == "t" && s.at != "":
			return nil, fmt.Errorf("the header %s has two times", name)
		case key == "t":
			s.at = value
		case key == "v1":
			s.addMAC(value)
		}
	}
	if !isTime(s.at) {
		return nil, fmt.Errorf("the header %s has no t=<seconds>", name)
	}
	return s.checkMACs(name, "v1=<hex>")
}

// addMAC adds a MAC in hexadecimal.
func (s *Signed) addMAC(text string) {
	if mac, err := hex.DecodeString(text); err == nil {
		s.macs = append(s.macs, mac)
	}
}

func (s *Signed) checkMACs(name, form string) (*Signed, error) {
	switch {
	case len(s.macs) == 0:
		return nil, fmt.Errorf("the header %s has no signature of the form %s", name, form)
	case len(s.macs) > maxSignatures:
		return nil, fmt.Errorf("the header %s has more than %d signatures", name, maxSignatures)
	}
	return s, nil
}

// isID reports whether a text may be an id. With dots, what was signed could be divided into id,
// time and body in more than one way.
func isID(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '.' {
			return false
		}
	}
	return text != "" && len(text) <= maxID
}

// isTime reports whether a text is a time in seconds, written in one way only.
func isTime(text string) bool {
	n, err := strconv.ParseUint(text, 10, 40)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// By reports whether a delivery with this body was signed with a secret. It takes as long for every
// wrong signature, and as long for headers that could not be read (nil).
func (s *Signed) By(secret string, body []byte) bool {
	if s == nil {
		s = &Signed{}
	}
	right, found := s.computeMAC(secret, body), false
	for _, mac := range s.macs {
		found = hmac.Equal(mac, right) || found
	}
	return found
}

// computeMAC is the right signature.
func (s *Signed) computeMAC(secret string, body []byte) []byte {
	h := hmac.New(sha256.New, keyOf(s.scheme, secret))
	h.Write([]byte(s.signedPrefix())) // it never fails
	h.Write(body)
	return h.Sum(nil)
}

// signedPrefix is what is signed before the body.
func (s *Signed) signedPrefix() string {
	switch s.scheme {
	case Standard:
		return s.id + "." + s.at + "."
	case Stripe:
		return s.at + "."
	}
	return ""
}

// keyOf is the key that a secret stands for. Standard Webhooks write keys in base64 behind a
// prefix; elsewhere a secret is its own text.
func keyOf(scheme, secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok && scheme == Standard {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// Late says why a delivery has come at the wrong time, "" = it has not.
func (s *Signed) Late(now time.Time) string {
	if s.at == "" {
		return ""
	}
	seconds, _ := strconv.ParseInt(s.at, 10, 64) // it is one
	switch at := time.Unix(seconds, 0); {
	case now.Sub(at) > Tolerance:
		return "it was signed more than five minutes ago"
	case at.Sub(now) > Tolerance:
		return "it was signed more than five minutes in the future"
	}
	return ""
}

// ID names the delivery: what has one id is the same delivery. It is made of what was signed alone.
func (s *Signed) ID(body []byte) string {
	if s.id != "" {
		return s.id
	}
	h := sha256.New()
	h.Write([]byte(s.signedPrefix()))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// Until is when the delivery may be forgotten.
func (s *Signed) Until(now time.Time) time.Time {
	if s.scheme == Stripe { // its id names the time, too, so what comes with the same id later is late
		return now.Add(2*Tolerance + time.Minute)
	}
	return now.Add(rememberFor)
}
