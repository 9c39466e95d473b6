package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/persistence"
)

// Tokens of the store are valid besides those that the server was started with. Each member keeps a
// list of them, so that requests need not read the store.

const (
	// greatest age of the list; other members accept a deleted token for this long
	tokensAge   = 5 * time.Second
	tokensWait  = 2 * time.Second // time for the store to return the list
	tokenUseAge = time.Minute     // precision of a token's last use
)

// storedTokens holds the tokens of the store as of the last read.
type storedTokens struct {
	store persistence.Tokens
	age   time.Duration // greatest age of the list
	turn  chan struct{} // held by the goroutine that reads the list or changes a token
	last  atomic.Pointer[tokenList]
}

type tokenList struct {
	at     time.Time
	byHash map[[sha256.Size]byte]*storedToken
	byID   map[string]*storedToken
}

// storedToken is a token and the time when its use was last stored.
type storedToken struct {
	persistence.Token
	noted atomic.Int64
}

func newStoredTokens(store persistence.Tokens) *storedTokens {
	return &storedTokens{store: store, age: tokensAge, turn: make(chan struct{}, 1)}
}

// NewToken returns a new token and its hash. Its text begins with a prefix that secret scanners can
// recognize.
func NewToken() (text string, hash []byte) {
	var secret [32]byte
	rand.Read(secret[:]) // Read never fails
	text = "trp_" + hex.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(text))
	return text, sum[:]
}

func (s *storedTokens) loadList(ctx context.Context) (*tokenList, error) {
	if l := s.last.Load(); s.isFresh(l) {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokensWait)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turn }()
	if l := s.last.Load(); s.isFresh(l) {
		return l, nil
	}
	l := &tokenList{at: time.Now(), byHash: map[[sha256.Size]byte]*storedToken{}, byID: map[string]*storedToken{}}
	rows, err := s.store.ListTokens(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if len(row.Hash) != sha256.Size {
			continue // no member of ours has written this hash
		}
		t := &storedToken{Token: row}
		t.noted.Store(row.LastUsedAt)
		l.byHash[[sha256.Size]byte(row.Hash)], l.byID[row.ID] = t, t
	}
	s.last.Store(l)
	return l, nil
}

func (s *storedTokens) isFresh(l *tokenList) bool { return l != nil && time.Since(l.at) < s.age }

// changeTokens writes to the store and makes the change count here at once: a list read before the
// change is dropped.
func (s *storedTokens) changeTokens(ctx context.Context, write func(persistence.Tokens) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	defer s.last.Store(nil)
	return write(s.store)
}

// findToken returns a valid token and notes its use; nil if there is none.
func (s *storedTokens) findToken(ctx context.Context, in func(*tokenList) *storedToken) (*storedToken, error) {
	l, err := s.loadList(ctx)
	if err != nil {
		return nil, err
	}
	t, now := in(l), time.Now().UnixMilli()
	if !t.isValid(now) {
		return nil, nil
	}
	s.noteUse(ctx, t, now)
	return t, nil
}

func (t *storedToken) isValid(now int64) bool {
	return t != nil && (t.ExpiresAt == 0 || now < t.ExpiresAt)
}

// whileGood serves a request with a token of the store. A request that stays, such as a stream, is
// ended when its token becomes invalid.
func (s *storedTokens) whileGood(next http.Handler, w http.ResponseWriter, r *http.Request, id string) {
	ctx, cancel := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait() // no goroutine may touch w after this returns
	defer cancel()
	watch := sync.OnceFunc(func() { watching.Go(func() { s.watchToken(ctx, cancel, w, id) }) })
	serveWith(stream.OnStay(ctx, watch), next, w, r)
}

func (s *storedTokens) watchToken(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, id string) {
	tick := time.NewTicker(s.age)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l, err := s.loadList(ctx)
		if err != nil || l.byID[id].isValid(time.Now().UnixMilli()) {
			continue // without the store the validity is unknown
		}
		cancel()
		// a handler that reads from the client does not watch the context
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		// a WebSocket's connection no longer belongs to the server: it ends with the context
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
		return
	}
}

// noteUse stores that a token was used, unless that was stored a short while ago.
func (s *storedTokens) noteUse(ctx context.Context, t *storedToken, now int64) {
	before := t.noted.Load()
	if now-before < tokenUseAge.Milliseconds() || !t.noted.CompareAndSwap(before, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// a use that is not stored now is stored after the next read of the list
	_ = s.store.UseToken(ctx, t.ID, now)
}

func (t *storedToken) toIdentity() Identity {
	return Identity{Name: t.Name, Role: Role(t.Role), Token: t.ID}
}

func byHash(token string) func(*tokenList) *storedToken {
	sum := sha256.Sum256([]byte(token))
	return func(l *tokenList) *storedToken { return l.byHash[sum] }
}

func byID(id string) func(*tokenList) *storedToken {
	return func(l *tokenList) *storedToken { return l.byID[id] }
}

// AddToken stores a token. It is valid here at once, and on other members within seconds.
func (s *Server) AddToken(ctx context.Context, t persistence.Token) error {
	return s.guard.stored.changeTokens(ctx, func(store persistence.Tokens) error { return store.AddToken(ctx, t) })
}

// DeleteToken deletes a token: here at once, on other members within seconds.
func (s *Server) DeleteToken(ctx context.Context, id string) error {
	return s.guard.stored.changeTokens(ctx, func(store persistence.Tokens) error { return store.DeleteToken(ctx, id) })
}
