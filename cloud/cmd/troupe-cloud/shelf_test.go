package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// shelf is a worker's access to the files of attempts, with the client of the vendor.
type shelf interface {
	put(ctx context.Context, bucket, key string, text []byte) error
	get(ctx context.Context, bucket, key string) ([]byte, error)
}

// shelfOf returns the shelf for an address from TASK_SPEC_PATH.
func shelfOf(ctx context.Context, address string) (shelf, error) {
	scheme, _, _ := strings.Cut(address, "://")
	switch scheme {
	case "gs":
		client, err := storage.NewClient(ctx)
		return google{client}, err
	case "s3":
		own, err := config.LoadDefaultConfig(ctx)
		return amazon{s3.NewFromConfig(own, func(o *s3.Options) { o.UsePathStyle = true })}, err
	case "azblob":
		at, account := url.URL{Scheme: os.Getenv("AZURE_STORAGE_PROTOCOL"),
			Host: os.Getenv("AZURE_STORAGE_DOMAIN")}, os.Getenv("AZURE_STORAGE_ACCOUNT")
		key, err := azblob.NewSharedKeyCredential(account, os.Getenv("AZURE_STORAGE_KEY"))
		if err != nil {
			return nil, err
		}
		client, err := azblob.NewClientWithSharedKeyCredential(at.JoinPath(account).String(), key, nil)
		return azure{client}, err
	}
	return folder{}, nil
}

// beside returns another file in the same folder: its bucket and key, or its path.
func beside(address, name string) (bucket, key string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", filepath.Join(filepath.Dir(address), name)
	}
	return u.Host, strings.TrimPrefix(u.JoinPath("..", name).Path, "/")
}

// puts writes a file beside the one at address.
func puts(ctx context.Context, address, name, text string) error {
	s, err := shelfOf(ctx, address)
	if err != nil {
		return err
	}
	bucket, key := beside(address, name)
	return s.put(ctx, bucket, key, []byte(text))
}

// gets reads a file beside the one at address.
func gets(ctx context.Context, address, name string) (string, error) {
	s, err := shelfOf(ctx, address)
	if err != nil {
		return "", err
	}
	bucket, key := beside(address, name)
	text, err := s.get(ctx, bucket, key)
	return string(text), err
}

// tool runs this program as a command in scripts of workers: put NAME TEXT, get NAME, and work
// SECONDS OUTPUT, which sends a heartbeat each second. Files are beside the one that TASK_SPEC_PATH
// names.
func tool(args []string) (code int, is bool) {
	if len(args) < 2 {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var err error
	switch spec := os.Getenv("TASK_SPEC_PATH"); args[0] {
	case "put":
		err = puts(ctx, spec, args[1], args[2])
	case "get":
		var text string
		text, err = gets(ctx, spec, args[1])
		fmt.Print(text)
	case "work":
		err = work(ctx, spec, args[1], args[2])
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

func work(ctx context.Context, spec, seconds, output string) error {
	n, err := strconv.Atoi(seconds)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for i := 0; i < n && err == nil; i++ {
		err = puts(ctx, spec, "status.json", fmt.Sprintf(`{"status": "running", "heartbeat_at": %d}`, i))
		<-second.C
	}
	if err == nil {
		err = puts(ctx, spec, "output.json", output)
	}
	if err == nil {
		err = puts(ctx, spec, "status.json", `{"status": "success"}`)
	}
	return err
}

type google struct{ *storage.Client }

func (g google) put(ctx context.Context, bucket, key string, text []byte) error {
	w := g.Bucket(bucket).Object(key).NewWriter(ctx)
	_, err := w.Write(text)
	return errors.Join(err, w.Close())
}

func (g google) get(ctx context.Context, bucket, key string) ([]byte, error) {
	r, err := g.Bucket(bucket).Object(key).NewReader(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

type amazon struct{ *s3.Client }

func (a amazon) put(ctx context.Context, bucket, key string, text []byte) error {
	_, err := a.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(text)})
	return err
}

func (a amazon) get(ctx context.Context, bucket, key string) ([]byte, error) {
	object, err := a.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)})
	if err != nil {
		return nil, err
	}
	defer object.Body.Close()
	return io.ReadAll(object.Body)
}

type azure struct{ *azblob.Client }

func (a azure) put(ctx context.Context, bucket, key string, text []byte) error {
	_, err := a.UploadBuffer(ctx, bucket, key, text, nil)
	return err
}

func (a azure) get(ctx context.Context, bucket, key string) ([]byte, error) {
	blob, err := a.DownloadStream(ctx, bucket, key, nil)
	if err != nil {
		return nil, err
	}
	defer blob.Body.Close()
	return io.ReadAll(blob.Body)
}

type folder struct{}

func (folder) put(_ context.Context, _, path string, text []byte) error {
	draft := fmt.Sprintf("%s.%d", path, os.Getpid())
	return errors.Join(os.WriteFile(draft, text, 0o600), os.Rename(draft, path))
}

func (folder) get(_ context.Context, _, path string) ([]byte, error) { return os.ReadFile(path) }
