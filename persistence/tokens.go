package persistence

import "context"

// Tokens stores the API tokens and their roles.
type Tokens interface {
	// AddToken stores a token. It returns ErrDuplicate if its id, name or hash is in use.
	AddToken(ctx context.Context, t Token) error
	// ListTokens returns all tokens in order of name.
	ListTokens(ctx context.Context) ([]Token, error)
	// UseToken records when a token was used, unless a later use is recorded or the token does not
	// exist.
	UseToken(ctx context.Context, id string, at int64) error
	DeleteToken(ctx context.Context, id string) error // returns ErrNotFound if there is none
}

// Token is an API token without its text. Only the hash is stored, from which the text cannot be
// derived.
type Token struct {
	ID         string
	Name       string
	Role       string // a role of the API
	Hash       []byte // SHA-256 of the text
	CreatedAt  int64
	CreatedBy  string
	ExpiresAt  int64 // 0 = never
	LastUsedAt int64 // 0 = never used
}
