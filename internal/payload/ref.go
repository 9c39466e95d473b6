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

// Folders is the folder that holds the folders of all tasks.
const Folders = "values/"

// Folder returns the folder of a task's objects.
func Folder(task string) string { return Folders + task + "/" }

// Ref is a reference to an object.
type Ref struct {
	Task string // task that owns the object
	// name of the object in the task's folder: the hash, and a suffix that distinguishes objects of
	// equal content
	Name string
	Size int // in bytes
}

// Key returns the key of the object.
func (r *Ref) Key() string { return Folder(r.Task) + r.Name }

// contentHash returns the hash of the content, which is the beginning of the name.
func (r *Ref) contentHash() string {
	hash, _, _ := strings.Cut(r.Name, ".")
	return hash
}

// contentKey identifies the content within the task, independent of the object that holds it.
func (r *Ref) contentKey() string { return contentKeyOf(r.Task, r.contentHash()) }

func contentKeyOf(task, hash string) string { return task + "/" + hash }

// hashOf returns the hash of a content in the form used in names.
func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// referenceMarker returns the beginning of all references of a store. This text cannot occur inside
// a JSON string, where the quotes would be escaped.
func referenceMarker(secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("references to values"))
	word := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:15])
	return []byte(`{"$value ` + word + `":"`)
}

// markEnd is the end of a reference.
var markEnd = []byte(`"}`)

// referenceText returns the text of a reference: a JSON object with one key.
func (s *Store) referenceText(r *Ref) json.RawMessage {
	b := append(bytes.Clone(s.mark), r.Task...)
	b = append(append(append(b, '/'), r.Name...), '/')
	return append(strconv.AppendInt(b, int64(r.Size), 10), markEnd...)
}

// nextReference finds the first reference in a value, and its beginning and end; begin is -1 if
// there is none.
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

// asReference parses a value that is itself a reference; ok is false for other values.
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

// isFolderName reports whether text is valid as the name of a folder and can be part of a reference
// without escaping.
func isFolderName(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' || c == '/' {
			return false
		}
	}
	return text != "" && text != "." && text != ".."
}
