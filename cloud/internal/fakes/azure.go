package fakes

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Account of the fake, and its key.
const (
	AzureAccount = "troupe"
	AzureKey     = "bm9ib2R5IGVsc2Uga25vd3MgaXQ="
)

// Azure is a fake of Azure Blob Storage: an account with containers of block blobs.
type Azure struct {
	URL string // of the account

	server     *httptest.Server
	mu         sync.Mutex
	containers map[string]map[string]*azureBlob // blobs by container and name
	staged     map[string][]byte                // uncommitted blocks, by container, blob and id
	writes     int
}

type azureBlob struct {
	value         []byte
	kind          string
	hash          []byte // of a blob written at once; blobs of several blocks have none
	made, written time.Time
	tag           string
}

// NewAzure starts a server; the caller has to close it.
func NewAzure() *Azure {
	a := &Azure{containers: map[string]map[string]*azureBlob{}, staged: map[string][]byte{}}
	a.server = httptest.NewServer(a)
	a.URL = a.server.URL + "/" + AzureAccount
	return a
}

// Close stops the server.
func (a *Azure) Close() { a.server.Close() }

// Make creates a container.
func (a *Azure) Make(container string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.containers[container] = map[string]*azureBlob{}
}

// ServeHTTP implements the parts of the API about blobs and their lists.
func (a *Azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	w.Header().Set("x-ms-request-id", rand.Text())
	container, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"+AzureAccount+"/"), "/")
	a.mu.Lock()
	defer a.mu.Unlock()
	blobs, there := a.containers[container]
	switch query := r.URL.Query(); {
	case !a.isSigned(r):
		refuseAzure(w, http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request.")
	case !there:
		refuseAzure(w, http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
	case name == "" && r.Method == http.MethodGet && query.Get("restype") == "container" && query.Get("comp") == "list":
		a.listBlobs(w, container, query)
	case name != "" && r.Method == http.MethodPut:
		a.writeBlob(w, r, container+"/"+name, blobs, name, body)
	case name != "" && query.Get("comp") == "" && (r.Method == http.MethodGet ||
		r.Method == http.MethodHead || r.Method == http.MethodDelete):
		readAzure(w, r, blobs, name)
	default:
		refuseAzure(w, http.StatusBadRequest, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")
	}
}

// isSigned reports whether a request is signed with the key, by the rules of "Authorize with Shared
// Key".
func (a *Azure) isSigned(r *http.Request) bool {
	length := ""
	if r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	h := r.Header
	lines := []string{r.Method, h.Get("Content-Encoding"), h.Get("Content-Language"), length,
		h.Get("Content-MD5"), h.Get("Content-Type"), h.Get("Date"),
		h.Get("If-Modified-Since"), h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"), h.Get("Range")}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if own := strings.ToLower(name); strings.HasPrefix(own, "x-ms-") {
			lines = append(lines, own+":"+strings.Join(h[name], ","))
		}
	}
	resource := "/" + AzureAccount + r.URL.EscapedPath()
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		slices.Sort(query[name])
		resource += "\n" + strings.ToLower(name) + ":" + strings.Join(query[name], ",")
	}
	key, _ := base64.StdEncoding.DecodeString(AzureKey) // our key is valid
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(append(lines, resource), "\n")))
	return h.Get("Authorization") == "SharedKey "+AzureAccount+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// refuseAzure writes an error in the format of the API.
func refuseAzure(w http.ResponseWriter, status int, code, text string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, text)
}

// writeBlob creates a blob: at once, or from blocks sent before.
func (a *Azure) writeBlob(w http.ResponseWriter, r *http.Request, place string, blobs map[string]*azureBlob, name string, body []byte) {
	comp, old := r.URL.Query().Get("comp"), blobs[name]
	one := &azureBlob{kind: r.Header.Get("x-ms-blob-content-type"), written: time.Now().UTC(), made: time.Now().UTC()}
	switch {
	case comp == "block":
		a.staged[place+"\n"+r.URL.Query().Get("blockid")] = body
		w.WriteHeader(http.StatusCreated)
		return
	case old != nil && r.Header.Get("If-None-Match") == "*":
		refuseAzure(w, http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
		return
	case comp == "blocklist":
		if !a.joinBlocks(one, place, body) {
			refuseAzure(w, http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
			return
		}
	case comp != "" || r.Header.Get("x-ms-blob-type") != "BlockBlob":
		refuseAzure(w, http.StatusBadRequest, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")
		return
	default:
		hash := md5.Sum(body)
		one.value, one.hash = body, hash[:]
		w.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(one.hash))
	}
	if old != nil {
		one.made = old.made
	}
	a.writes++
	one.tag = fmt.Sprintf(`"0x%016X"`, a.writes)
	blobs[name] = one
	one.setVersion(w.Header())
	w.WriteHeader(http.StatusCreated)
}

// joinBlocks joins the blocks of a list.
func (a *Azure) joinBlocks(one *azureBlob, place string, body []byte) bool {
	var list struct {
		Latest []string `xml:"Latest"`
	}
	if xml.Unmarshal(body, &list) != nil {
		return false
	}
	for _, id := range list.Latest {
		block, ok := a.staged[place+"\n"+id]
		if !ok {
			return false
		}
		one.value = append(one.value, block...)
	}
	maps.DeleteFunc(a.staged, func(key string, _ []byte) bool { return strings.HasPrefix(key, place+"\n") })
	return true
}

// setVersion sets the headers for the version of a blob.
func (b *azureBlob) setVersion(h http.Header) {
	h.Set("ETag", b.tag)
	h.Set("Last-Modified", b.written.Format(http.TimeFormat))
}

// readAzure returns a blob, a part of it or its properties, or deletes it.
func readAzure(w http.ResponseWriter, r *http.Request, blobs map[string]*azureBlob, name string) {
	b := blobs[name]
	if b == nil {
		refuseAzure(w, http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
		return
	}
	if r.Method == http.MethodDelete {
		delete(blobs, name)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h, status, value := w.Header(), http.StatusOK, b.value
	hashed := "Content-MD5"
	if asked := r.Header.Get("x-ms-range"); asked != "" {
		from, to, ok := partOf(asked, len(b.value))
		if !ok {
			refuseAzure(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange",
				"The range specified is invalid for the current size of the resource.")
			return
		}
		hashed, status, value = "x-ms-blob-content-md5", http.StatusPartialContent, b.value[from:to]
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(b.value)))
	}
	if b.hash != nil {
		h.Set(hashed, base64.StdEncoding.EncodeToString(b.hash))
	}
	b.setVersion(h)
	h.Set("Content-Type", b.kind)
	h.Set("Content-Length", strconv.Itoa(len(value)))
	h.Set("x-ms-blob-type", "BlockBlob")
	h.Set("x-ms-creation-time", b.made.Format(http.TimeFormat))
	w.WriteHeader(status)
	_, _ = w.Write(value) // HEAD has no body; a disconnected client asks again
}

// partOf parses a range, bytes=FROM-TO or bytes=FROM-, of size bytes.
func partOf(text string, size int) (from, to int, ok bool) {
	begin, end, _ := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	from, err := strconv.Atoi(begin)
	last := size - 1
	if end != "" && err == nil {
		last, err = strconv.Atoi(end)
	}
	return from, min(last+1, size), err == nil && from < size && from <= last
}

type azureList struct {
	XMLName    xml.Name `xml:"EnumerationResults"`
	Endpoint   string   `xml:"ServiceEndpoint,attr"`
	Container  string   `xml:"ContainerName,attr"`
	Prefix     string
	Marker     string
	MaxResults int
	Delimiter  string `xml:",omitempty"`
	Blobs      struct {
		Blob       []azureListed
		BlobPrefix []azureFolder
	}
	NextMarker string
}

type azureFolder struct{ Name string }

type azureListed struct {
	Name       string
	Properties struct {
		Made    string `xml:"Creation-Time"`
		Written string `xml:"Last-Modified"`
		Tag     string `xml:"Etag"`
		Length  int    `xml:"Content-Length"`
		Kind    string `xml:"Content-Type"`
		Hash    string `xml:"Content-MD5,omitempty"`
		Type    string `xml:"BlobType"`
	}
}

// listBlobs returns a page of blobs, and of the folders between a prefix and a delimiter.
func (a *Azure) listBlobs(w http.ResponseWriter, container string, query url.Values) {
	answer := azureList{Endpoint: a.URL, Container: container, Prefix: query.Get("prefix"),
		Marker: query.Get("marker"), Delimiter: query.Get("delimiter"), MaxResults: 5000}
	if most, err := strconv.Atoi(query.Get("maxresults")); err == nil {
		answer.MaxResults = most
	}
	blobs, folder := a.containers[container], ""
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		rest, below := strings.CutPrefix(name, answer.Prefix)
		switch {
		case !below, name < answer.Marker, folder != "" && strings.HasPrefix(name, folder):
			continue
		case len(answer.Blobs.Blob)+len(answer.Blobs.BlobPrefix) == answer.MaxResults:
			answer.NextMarker = name
		}
		if answer.NextMarker != "" {
			break
		}
		if first, _, deeper := strings.Cut(rest, answer.Delimiter); deeper && answer.Delimiter != "" {
			folder = answer.Prefix + first + answer.Delimiter
			answer.Blobs.BlobPrefix = append(answer.Blobs.BlobPrefix, azureFolder{folder})
			continue
		}
		answer.Blobs.Blob = append(answer.Blobs.Blob, blobs[name].listEntry(name))
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header) // a disconnected client asks again
	_ = xml.NewEncoder(w).Encode(&answer)
}

func (b *azureBlob) listEntry(name string) (one azureListed) {
	one.Name = name
	p := &one.Properties
	p.Made, p.Written, p.Tag = b.made.Format(http.TimeFormat), b.written.Format(http.TimeFormat), strings.Trim(b.tag, `"`)
	p.Length, p.Kind, p.Hash, p.Type = len(b.value), b.kind, base64.StdEncoding.EncodeToString(b.hash), "BlockBlob"
	return one
}
