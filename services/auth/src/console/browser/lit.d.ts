// Types of `lit.js`, which the service answers with the package's own file (../assets.ts).
export * from 'lit-html'
