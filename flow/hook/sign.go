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

// Signature schemes of deliveries. All use HMAC-SHA256.
const (
	Standard = "standard" // Standard Webhooks: headers webhook-id, -timestamp and -signature
	GitHub   = "github"   // X-Hub-Signature-256: sha256=<hex>, over the body alone
	Stripe   = "stripe"   // Stripe-Signature: t=<seconds>,v1=<hex>
)

// Schemes lists all schemes.
var Schemes = []string{Standard, GitHub, Stripe}

// Limits of header values.
const (
	maxHeader     = 4 << 10
	maxSignatures = 10
	maxID         = 200
)

// Tolerance is the maximum difference between the time of a delivery and the local time.
const Tolerance = 5 * time.Minute

// rememberFor is how long the id of a delivery is stored if the delivery may be repeated after
// Tolerance. Senders repeat an unanswered delivery for hours, with a new time or without a time.
const rememberFor = 24 * time.Hour

// Signed holds the claims in a delivery's headers. They are untrusted until By has verified them.
type Signed struct {
	scheme string
	id     string   // id of the delivery; "" if it derives from the signed content
	at     string   // time in seconds; "" if the scheme has no time
	macs   [][]byte // signatures, of which one must be correct
}

// Read reads the claims from headers. get returns the values of a header by its lower-case name.
// name is the header of the signature; "" means the one of the scheme.
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

// singleHeader returns the value of a header. It returns an error unless the header occurs exactly
// once.
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
			continue // signature of another version
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

// addMAC adds a signature that is written in hexadecimal. Invalid text is ignored.
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

// isID reports whether a text is a valid id. With dots in an id, the signed text could be split
// into id, time and body in more than one way.
func isID(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '.' {
			return false
		}
	}
	return text != "" && len(text) <= maxID
}

// isTime reports whether a text is a time in seconds, in the only valid spelling.
func isTime(text string) bool {
	n, err := strconv.ParseUint(text, 10, 40)
	return err == nil && strconv.FormatUint(n, 10) == text
}

// By reports whether the delivery was signed with the secret for this body. It takes the same time
// for every wrong signature, and for headers that could not be read (s is nil).
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

// computeMAC returns the correct signature of a body.
func (s *Signed) computeMAC(secret string, body []byte) []byte {
	h := hmac.New(sha256.New, keyOf(s.scheme, secret))
	h.Write([]byte(s.signedPrefix())) // a hash never fails
	h.Write(body)
	return h.Sum(nil)
}

// signedPrefix returns the signed text that precedes the body.
func (s *Signed) signedPrefix() string {
	switch s.scheme {
	case Standard:
		return s.id + "." + s.at + "."
	case Stripe:
		return s.at + "."
	}
	return ""
}

// keyOf returns the signing key of a secret. Standard Webhooks writes keys in base64 after a
// prefix; in other schemes the secret itself is the key.
func keyOf(scheme, secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok && scheme == Standard {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// Late returns a description if a delivery came at the wrong time, or "" if its time is right.
func (s *Signed) Late(now time.Time) string {
	if s.at == "" {
		return ""
	}
	seconds, _ := strconv.ParseInt(s.at, 10, 64) // a valid number, as checked before
	switch at := time.Unix(seconds, 0); {
	case now.Sub(at) > Tolerance:
		return "it was signed more than five minutes ago"
	case at.Sub(now) > Tolerance:
		return "it was signed more than five minutes in the future"
	}
	return ""
}

// ID returns the id of the delivery. Deliveries with the same id are repetitions. The id derives
// only from signed content.
func (s *Signed) ID(body []byte) string {
	if s.id != "" {
		return s.id
	}
	h := sha256.New()
	h.Write([]byte(s.signedPrefix()))
	h.Write(body)
	return hex.EncodeToString(h.Sum(nil))
}

// Until returns the time until which the id of the delivery must be stored.
func (s *Signed) Until(now time.Time) time.Time {
	// The id includes the time, so a later delivery with the same id is rejected as late.
	if s.scheme == Stripe {
		return now.Add(2*Tolerance + time.Minute)
	}
	return now.Add(rememberFor)
}
