package persistence

import "context"

// Tokens keeps who may come in, and what as.
type Tokens interface {
	// AddToken keeps a token. ErrDuplicate when its id, its name or its hash is there.
	AddToken(ctx context.Context, t Token) error
	// ListTokens lists all of them in order of name.
	ListTokens(ctx context.Context) ([]Token, error)
	// UseToken notes that a token was used at a time, unless a later one is noted or it is not
	// there.
	UseToken(ctx context.Context, id string, at int64) error
	DeleteToken(ctx context.Context, id string) error // ErrNotFound
}

// Token is one without its text: of that only the hash is kept, from which nobody can tell it.
type Token struct {
	ID         string
	Name       string
	Role       string // as the API knows them
	Hash       []byte // SHA-256 of the text
	CreatedAt  int64
	CreatedBy  string
	ExpiresAt  int64 // 0 = never
	LastUsedAt int64 // 0 = it was not used
}
