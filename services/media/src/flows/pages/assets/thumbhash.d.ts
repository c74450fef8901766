// Types of `thumbhash.js`, which the service answers with the package's own file (../document.ts).
export * from 'thumbhash'
