package wire

// SessionRequest carries a browser's token.
type SessionRequest struct {
	Token string `json:"token" maxLength:"4000" doc:"Token that the server was started with, or that an admin created."`
}

// Identity describes the caller.
type Identity struct {
	Name       string `json:"name,omitempty" doc:"Name of the token; flag = a token that the server was started with; absent if no token is needed." example:"ada"`
	Role       string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"Role of the caller; x-roles of each operation in the OpenAPI document lists the roles that may use it."`
	NeedsToken bool   `json:"needs_token" doc:"False if every caller may do everything."`
}
