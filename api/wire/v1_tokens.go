package wire

// Token is a token of the store, without its text.
type Token struct {
	ID         string `json:"id"`
	Name       string `json:"name" example:"ada"`
	Role       string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"what who has it may do"`
	CreatedAt  Time   `json:"created_at"`
	CreatedBy  string `json:"created_by,omitempty" doc:"name of the token by which it was made; flag = one that a member was started with"`
	ExpiresAt  Time   `json:"expires_at,omitzero" doc:"when it is good no longer; absent = never"`
	LastUsedAt Time   `json:"last_used_at,omitzero" doc:"to the minute; absent = never"`
}

// CreateToken is a request to create a token.
type CreateToken struct {
	Name        string `json:"name" maxLength:"64" doc:"who has it, or what for; up to 64 of A-Z, a-z, 0-9, '@', '.', '_' and '-'" example:"ada"`
	Role        string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"viewer sees; approver answers approvals, too; operator steers tasks, too; author publishes, too; admin does everything; worker carries out jobs and nothing else"`
	ExpiresInMS int64  `json:"expires_in_ms,omitempty" minimum:"0" maximum:"315360000000" doc:"how long it is good; 0 = until it is deleted"`
}

// TokenCreated is the answer to a CreateToken.
type TokenCreated struct {
	Token
	Secret string `json:"secret" doc:"the token itself: it is shown this once"`
}
