package wire

// OpenSession carries a browser's token.
type OpenSession struct {
	Token string `json:"token" maxLength:"4000" doc:"one that the server was started with, or that an admin has made"`
}

// Me describes the caller.
type Me struct {
	Name       string `json:"name,omitempty" doc:"of the token; flag = one that the server was started with; absent where no token is needed" example:"ada"`
	Role       string `json:"role" enum:"viewer,approver,operator,author,admin,worker" doc:"what who asks may do: see x-roles of each operation in the description"`
	NeedsToken bool   `json:"needs_token" doc:"false: everybody who reaches the server may do everything"`
}
