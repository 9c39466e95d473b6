// Package bucket opens cloud buckets for members: gs://BUCKET/PREFIX,
// s3://BUCKET/PREFIX?region=…&endpoint=… and azblob://CONTAINER/PREFIX, and mem:// for tests. They
// hold the files of workers that report by files, and large values.
//
// Promises: those of objects.Bucket, verified by the same suite as for folders. Credentials come
// from each cloud's usual settings, read when a bucket is opened. No other cloud service is used.
package bucket

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob:
	_ "gocloud.dev/blob/gcsblob"   // gs:
	_ "gocloud.dev/blob/memblob"   // mem:
	_ "gocloud.dev/blob/s3blob"    // s3:
	"gocloud.dev/gcerrors"

	"github.com/troupe-engine/troupe"
)

// Openers returns functions that open buckets, by URL scheme.
func Openers() map[string]troupe.OpenBucket {
	return map[string]troupe.OpenBucket{"gs": Open, "s3": Open, "azblob": Open, "mem": Open}
}

// Open opens the bucket of a URL. The path is the prefix of all keys, and the query holds settings
// of gocloud.dev.
func Open(ctx context.Context, at *url.URL) (troupe.Bucket, error) {
	plain := *at
	plain.Path, plain.RawPath = "", ""
	opened, err := blob.OpenBucket(ctx, plain.String())
	if err != nil {
		return nil, fmt.Errorf("the bucket %s://%s: %w", at.Scheme, at.Host, err)
	}
	b := &Bucket{bucket: opened, at: at.Scheme + "://" + at.Host + "/"}
	if prefix := strings.Trim(at.Path, "/"); prefix != "" {
		b.bucket, b.at = blob.PrefixedBucket(opened, prefix+"/"), b.at+prefix+"/"
	}
	return b, nil
}

// Bucket is a bucket of a cloud.
type Bucket struct {
	bucket *blob.Bucket
	at     string
}

// Get reads an object, at most one byte more than most.
func (b *Bucket) Get(ctx context.Context, key string, most int) ([]byte, error) {
	return b.readObject(ctx, key, func() (*blob.Reader, error) { return b.bucket.NewReader(ctx, key, nil) }, most+1)
}

// Range reads a part of an object. It handles clouds that return an error for a range behind the
// end.
func (b *Bucket) Range(ctx context.Context, key string, from int64, most int) ([]byte, error) {
	part, err := b.readObject(ctx, key, func() (*blob.Reader,
		error) {
		return b.bucket.NewRangeReader(ctx, key, from, int64(most), nil)
	}, most)
	if err == nil || ctx.Err() != nil {
		return part, err
	}
	if known, gone := b.bucket.Attributes(ctx, key); gone == nil && known.Size <= from {
		return nil, nil
	}
	return nil, err
}

func (b *Bucket) readObject(ctx context.Context, key string, open func() (*blob.Reader, error), most int) (text []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, err := open()
	if err == nil {
		defer r.Close() // an error loses no data that was read
		text, err = io.ReadAll(io.LimitReader(r, int64(most)))
	}
	return text, b.mapError("reading", key, err)
}

// Put writes an object.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) error {
	return b.writeObject(ctx, key, value, &blob.WriterOptions{})
}

// Create writes an object that does not exist yet.
func (b *Bucket) Create(ctx context.Context, key string, value []byte) error {
	err := b.writeObject(ctx, key, value, &blob.WriterOptions{IfNotExist: true})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%s: %w", b.Address(key), fs.ErrExist)
	}
	return err
}

func (b *Bucket) writeObject(ctx context.Context, key string, value []byte, o *blob.WriterOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.ContentType = "application/json"
	return b.mapError("writing", key, b.bucket.WriteAll(ctx, key, value, o))
}

// List lists the objects below a prefix. Without a hash of the content a change of an object cannot
// be detected.
func (b *Bucket) List(ctx context.Context, prefix string) (list []troupe.BucketObject, err error) {
	err = b.forEachObject(ctx, &blob.ListOptions{Prefix: prefix}, func(o *blob.ListObject) error {
		object := troupe.BucketObject{Key: o.Key, Written: o.ModTime}
		if len(o.MD5) > 0 {
			object.Version = fmt.Sprintf("%x %d", o.MD5, o.ModTime.UnixNano())
		}
		list = append(list, object)
		return nil
	})
	return list, err
}

// Folders returns the names of the folders directly below a prefix.
func (b *Bucket) Folders(ctx context.Context, prefix string) (names []string, err error) {
	err = b.forEachObject(ctx, &blob.ListOptions{Prefix: prefix, Delimiter: "/"}, func(o *blob.ListObject) error {
		if o.IsDir {
			names = append(names, strings.Trim(strings.TrimPrefix(o.Key, prefix), "/"))
		}
		return nil
	})
	return names, err
}

func (b *Bucket) forEachObject(ctx context.Context, o *blob.ListOptions, visit func(*blob.ListObject) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for iter := b.bucket.List(o); ; {
		object, err := iter.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return b.mapError("listing", o.Prefix, err)
		}
		if err := visit(object); err != nil {
			return err
		}
	}
}

// deleteTries is the number of attempts to delete a prefix while objects are being written into it.
const deleteTries = 100

// Delete removes everything below a prefix, and repeats that until nothing is left.
func (b *Bucket) Delete(ctx context.Context, prefix string) error {
	for range deleteTries {
		list, err := b.List(ctx, prefix)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, o := range list {
			if err := b.Remove(ctx, o.Key); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%s: others go on writing there", b.Address(prefix))
}

// Remove deletes an object.
func (b *Bucket) Remove(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := b.bucket.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return b.mapError("deleting", key, err)
}

// Address returns the URL of an object.
func (b *Bucket) Address(key string) string { return b.at + key }

// mapError converts an error to the errors of objects.Bucket.
func (b *Bucket) mapError(doing, key string, err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.OK:
		return nil
	case gcerrors.NotFound:
		return fmt.Errorf("%s %s: %w", doing, b.Address(key), fs.ErrNotExist)
	case gcerrors.PermissionDenied:
		return fmt.Errorf("%s %s: %w: %w", doing, b.Address(key), fs.ErrPermission, err)
	}
	return fmt.Errorf("%s %s: %w", doing, b.Address(key), err)
}
