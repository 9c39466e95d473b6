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

// Tokens of the store are valid in addition to the start tokens. Each member caches the list of
// tokens, so that requests do not read the store.

const (
	// maximum age of the list; other members accept a deleted token for this long
	tokensAge   = 5 * time.Second
	tokensWait  = 2 * time.Second // how long the store may take to return the list
	tokenUseAge = time.Minute     // minimum time between two stored uses of a token
)

// storedTokens holds the tokens of the store as of the last read.
type storedTokens struct {
	store persistence.Tokens
	age   time.Duration // maximum age of the list
	turn  chan struct{} // held while the list is read or a token is changed
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
			continue // another program stored an invalid hash
		}
		t := &storedToken{Token: row}
		t.noted.Store(row.LastUsedAt)
		l.byHash[[sha256.Size]byte(row.Hash)], l.byID[row.ID] = t, t
	}
	s.last.Store(l)
	return l, nil
}

func (s *storedTokens) isFresh(l *tokenList) bool { return l != nil && time.Since(l.at) < s.age }

// changeTokens writes to the store and drops the cached list, so that the change is effective here
// at once.
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

// findToken returns a valid token and records its use; nil if there is none.
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

// whileGood serves a request with a token of the store. It ends a request that stays, such as a
// stream, when the token becomes invalid.
func (s *storedTokens) whileGood(next http.Handler, w http.ResponseWriter, r *http.Request, id string) {
	ctx, cancel := context.WithCancel(r.Context())
	var watching sync.WaitGroup
	defer watching.Wait() // no goroutine may use w afterwards
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
			continue // without the store, the token may still be valid
		}
		cancel()
		// ends a handler that reads from the client and does not watch the context
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		// ends other handlers; the connection of a WebSocket no longer belongs to the server and
		// ends with the context
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
		return
	}
}

// noteUse stores that a token was used, unless a recent use is stored already.
func (s *storedTokens) noteUse(ctx context.Context, t *storedToken, now int64) {
	before := t.noted.Load()
	if now-before < tokenUseAge.Milliseconds() || !t.noted.CompareAndSwap(before, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	// after an error, a later use is stored
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

// DeleteToken deletes a token. It becomes invalid here at once, and on other members within
// seconds.
func (s *Server) DeleteToken(ctx context.Context, id string) error {
	return s.guard.stored.changeTokens(ctx, func(store persistence.Tokens) error { return store.DeleteToken(ctx, id) })
}
