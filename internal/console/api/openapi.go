package api

import _ "embed" // the document below

// OpenAPI is the description of the API for programs, as OpenAPI 3.1 has it. It is made from
// this package's types by the console's tests, and must not be changed.
//
//go:embed openapi.json
var OpenAPI []byte
