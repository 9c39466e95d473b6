package gossip

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/memberlist"
)

// ParseKeys parses gossip keys: one per line, in base64, of 16, 24 or 32 bytes; # begins a comment.
// The first key encrypts, and all keys decrypt. To replace a key, append the new key on all
// members, then put it first, then remove the old key. After each step, restart the members one at
// a time.
func ParseKeys(text []byte) ([][]byte, error) {
	var keys [][]byte
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		// Errors do not show the text, which is or may be a secret.
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf("cluster: gossip keys: line %d is no base64; head -c 32 /dev/urandom | base64 makes a key", number)
		}
		if memberlist.ValidateKey(key) != nil {
			return nil, fmt.Errorf("cluster: gossip keys: line %d has %d bytes: a key has 16, "+
				"24 or 32; head -c 32 /dev/urandom | base64 makes one", number, len(key))
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("cluster: gossip keys: there is no key in it; head -c 32 /dev/urandom | base64 makes one")
	}
	return keys, nil
}
