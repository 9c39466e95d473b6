package persistence

import "context"

// Tokens stores the API tokens and their roles.
type Tokens interface {
	// AddToken stores a token. It returns ErrDuplicate if its id, name or hash is in use.
	AddToken(ctx context.Context, t Token) error
	// ListTokens returns all tokens in order of name.
	ListTokens(ctx context.Context) ([]Token, error)
	// UseToken records the last use of a token, unless a later use is recorded or the token does
	// not exist.
	UseToken(ctx context.Context, id string, at int64) error
	DeleteToken(ctx context.Context, id string) error // returns ErrNotFound if there is none
}

// Token is an API token without its text. Only the hash of the text is stored.
type Token struct {
	ID         string
	Name       string
	Role       string // role of the API
	Hash       []byte // SHA-256 of the text
	CreatedAt  int64
	CreatedBy  string
	ExpiresAt  int64 // 0 means never
	LastUsedAt int64 // 0 means never used
}
