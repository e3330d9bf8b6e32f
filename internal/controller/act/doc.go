// Package act performs what promotion.Decide decided: commits and pushes through
// git, calls through forge, requests to Argo CD, rows in the store. Every
// action carries what it was judged on and is refused when the world has moved;
// every action may be done twice. Nothing is decided here.
package act
