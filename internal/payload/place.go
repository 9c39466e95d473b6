package payload

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// ownerKey is the key of the object that identifies the store to which the values belong. It moves
// together with the values.
const ownerKey = "values-of"

// ownerMark returns the content of the ownerKey object. It is derived from the secret of the store
// and does not reveal it.
func (s *Store) ownerMark() string {
	mac := hmac.New(sha256.New, []byte(s.opts.Secret))
	mac.Write([]byte("whose values these are"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ErrAway is the error of Settle if the bucket does not answer.
var ErrAway = errors.New("whose values are there could not be read")

// Settle verifies that the bucket at the given address holds this store's values. The argument
// noted is the address recorded by the store; "" means that no values were stored yet. In that case
// the store claims the bucket, unless it belongs to another store: a sweep would delete that
// store's values as unused.
func (s *Store) Settle(ctx context.Context, at, noted string) error {
	var text []byte
	err := retryBucket(ctx, func(ctx context.Context) (err error) {
		if text, err = s.opts.Bucket.Get(ctx, ownerKey, 1000); errors.Is(err, fs.ErrNotExist) && noted == "" {
			text = []byte(s.ownerMark() + "\n")
			// another member was first
			if err = s.opts.Bucket.Create(ctx, ownerKey, text); errors.Is(err, fs.ErrExist) {
				text, err = s.opts.Bucket.Get(ctx, ownerKey, 1000)
			}
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not where the large values of this store are: those are at %s; "+
			"where they have been moved to, there has to be the object %s, too, which tells "+
			"whose they are", at, noted, ownerKey)
	case err != nil:
		return fmt.Errorf("%s: %w: %w", at, ErrAway, err)
	case strings.TrimSpace(string(text)) != s.ownerMark():
		return fmt.Errorf("at %s are large values of another store: name a place of this one's own, such as a folder in it", at)
	}
	return nil
}
