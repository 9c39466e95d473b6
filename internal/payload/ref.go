package payload

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
)

// Folders is where the folders of all tasks are.
const Folders = "values/"

// Folder is where those of a task are.
func Folder(task string) string { return Folders + task + "/" }

// Ref is a reference.
type Ref struct {
	Task string // whose object it is
	Name string // of the object in that task's folder: its hash, and what tells it from others with the same content
	Size int    // in bytes
}

// Key of the object.
func (r *Ref) Key() string { return Folder(r.Task) + r.Name }

// contentHash is that of the content, as the name begins.
func (r *Ref) contentHash() string {
	hash, _, _ := strings.Cut(r.Name, ".")
	return hash
}

// contentKey is the content of a task that it refers to, wherever that is.
func (r *Ref) contentKey() string { return contentKeyOf(r.Task, r.contentHash()) }

func contentKeyOf(task, hash string) string { return task + "/" + hash }

// hashOf is the hash of a content as it is written in names.
func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// referenceMarker is how references of a store begin. A text with it is never inside a JSON string,
// where the quotes would be escaped.
func referenceMarker(secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("references to values"))
	word := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:15])
	return []byte(`{"$value ` + word + `":"`)
}

// markEnd ends a reference.
var markEnd = []byte(`"}`)

// referenceText of a reference: an object with one key.
func (s *Store) referenceText(r *Ref) json.RawMessage {
	b := append(bytes.Clone(s.mark), r.Task...)
	b = append(append(append(b, '/'), r.Name...), '/')
	return append(strconv.AppendInt(b, int64(r.Size), 10), markEnd...)
}

// nextReference finds the first reference in a value, and where it begins and ends; begin is -1
// when there is none.
func (s *Store) nextReference(v []byte) (r Ref, begin, end int) {
	for from := 0; ; {
		at := bytes.Index(v[from:], s.mark)
		if at < 0 {
			return Ref{}, -1, -1
		}
		begin = from + at
		from = begin + len(s.mark)
		length := bytes.Index(v[from:], markEnd)
		if length < 0 {
			return Ref{}, -1, -1
		}
		if r, ok := parseRef(string(v[from : from+length])); ok {
			return r, begin, from + length + len(markEnd)
		}
	}
}

// asReference reports whether a value is a reference itself.
func (s *Store) asReference(v []byte) (r Ref, ok bool) {
	if v = bytes.TrimSpace(v); !bytes.HasPrefix(v, s.mark) {
		return Ref{}, false
	}
	r, begin, end := s.nextReference(v)
	return r, begin == 0 && end == len(v)
}

func parseRef(text string) (r Ref, ok bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || !isFolderName(parts[0]) || !isFolderName(parts[1]) {
		return Ref{}, false
	}
	size, err := strconv.Atoi(parts[2])
	return Ref{Task: parts[0], Name: parts[1], Size: size}, err == nil && size >= 0
}

// isFolderName reports whether a text can be the name of a folder, and stand in a reference as it
// is.
func isFolderName(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '/' {
			return false
		}
	}
	return text != "" && text != "." && text != ".."
}
