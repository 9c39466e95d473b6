package wire

// Token is a token of the store, without its text.
type Token struct {
	ID         string `json:"id" doc:"ID of the token."`
	Name       string `json:"name" example:"ada" doc:"Name of the token."`
	Role       string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"Role of the token."`
	CreatedAt  Time   `json:"created_at" doc:"Time when the token was created."`
	CreatedBy  string `json:"created_by,omitempty" doc:"Name of the token that created it; flag = a token that a member was started with."`
	ExpiresAt  Time   `json:"expires_at,omitzero" doc:"Time when the token expires; absent = never."`
	LastUsedAt Time   `json:"last_used_at,omitzero" doc:"Time of the last use, to the minute; absent = never used."`
}

// TokenRequest is a request to create a token.
type TokenRequest struct {
	Name        string `json:"name" maxLength:"64" doc:"Name of its owner or purpose: up to 64 of A-Z, a-z, 0-9, '@', '.', '_' and '-'." example:"ada"`
	Role        string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"Role of the token. viewer: read. approver: also answer approvals. operator: also control tasks. author: also publish. admin: everything. worker: carry out jobs and nothing else."`
	ExpiresInMS int64  `json:"expires_in_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"Lifetime in milliseconds; 0 = until it is deleted."`
}

// CreatedToken is the answer to a TokenRequest.
type CreatedToken struct {
	Token
	Secret string `json:"secret" doc:"Text of the token; no other answer contains it."`
}
