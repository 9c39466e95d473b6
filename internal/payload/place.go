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

// ownerKey is the object that tells which store's values a place has. It goes with them wherever
// they are moved.
const ownerKey = "values-of"

// ownerMark is what it says: it follows from the secret of the store, and does not tell it.
func (s *Store) ownerMark() string {
	mac := hmac.New(sha256.New, []byte(s.opts.Secret))
	mac.Write([]byte("whose values these are"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// ErrAway is what Settle answers when the place does not.
var ErrAway = errors.New("whose values are there could not be read")

// Settle sees to it that the place, which is called at, is the one where the store's values are:
// noted is what the store knows of that, "" = nobody has kept any yet. Then the place becomes the
// store's, unless it is another one's, whose values a sweep would take for nobody's.
func (s *Store) Settle(ctx context.Context, at, noted string) error {
	var text []byte
	err := retryBucket(ctx, func(ctx context.Context) (err error) {
		if text, err = s.opts.Bucket.Get(ctx, ownerKey, 1000); errors.Is(err, fs.ErrNotExist) && noted == "" {
			text = []byte(s.ownerMark() + "\n")
			if err = s.opts.Bucket.Create(ctx, ownerKey, text); errors.Is(err, fs.ErrExist) { // somebody was first
				text, err = s.opts.Bucket.Get(ctx, ownerKey, 1000)
			}
		}
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not where the large values of this store are: those are at %s; where they have been moved to, there has to be the object %s, too, which tells whose they are", at, noted, ownerKey)
	case err != nil:
		return fmt.Errorf("%s: %w: %w", at, ErrAway, err)
	case strings.TrimSpace(string(text)) != s.ownerMark():
		return fmt.Errorf("at %s are large values of another store: name a place of this one's own, such as a folder in it", at)
	}
	return nil
}
