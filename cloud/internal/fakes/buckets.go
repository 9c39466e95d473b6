package fakes

import (
	"cmp"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/troupe-engine/troupe/internal/testing/ports"
)

// Buckets are fake buckets of all clouds, in this process.
type Buckets struct {
	Env map[string]string // variables by which the vendors' clients find them

	google  *fakestorage.Server
	backend *s3mem.Backend
	s3      *httptest.Server
	azure   *Azure
	made    atomic.Int64
}

// NewBuckets starts the servers; the caller has to close them.
func NewBuckets() (*Buckets, error) {
	address, err := ports.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, text, err := net.SplitHostPort(address)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err := cmp.Or(err, bad); err != nil {
		return nil, err
	}
	b := &Buckets{backend: s3mem.New(), azure: NewAzure()}
	b.google, err = fakestorage.NewServerWithOptions(fakestorage.Options{Scheme: "http", Host: host,
		Port: uint16(port), PublicHost: address})
	if err != nil {
		return nil, err
	}
	b.s3 = httptest.NewServer(gofakes3.New(b.backend).Server())
	b.Env = map[string]string{
		"STORAGE_EMULATOR_HOST": address,
		"AWS_ACCESS_KEY_ID":     "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": b.s3.URL,
		"AZURE_STORAGE_ACCOUNT": AzureAccount, "AZURE_STORAGE_KEY": AzureKey,
		"AZURE_STORAGE_PROTOCOL": "http", "AZURE_STORAGE_DOMAIN": strings.TrimPrefix(b.azure.server.URL, "http://"),
	}
	return b, nil
}

// Close stops the servers.
func (b *Buckets) Close() {
	b.google.Stop()
	b.s3.Close()
	b.azure.Close()
}

// Make creates a bucket of a kind (gs, s3 or azblob) and returns the URL of a place in it.
func (b *Buckets) Make(kind string) (at string, err error) {
	name := fmt.Sprint("bucket-", b.made.Add(1))
	at = kind + "://" + name + "/some/where"
	switch kind {
	case "gs":
		b.google.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: name})
	case "s3":
		err = b.backend.CreateBucket(name)
		at += "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(b.s3.URL)
	case "azblob":
		b.azure.Make(name)
		at += "?protocol=http&domain=" + url.QueryEscape(strings.TrimPrefix(b.azure.server.URL, "http://"))
	default:
		err = fmt.Errorf("there are no buckets of %s", kind)
	}
	return at, err
}
