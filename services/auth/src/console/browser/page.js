// Types of the screens. A screen is one address of the console and the code that fills its page.

/**
 * @typedef {object} Page
 * @property {Record<string, string>} params Parts of the path with a name, such as `:id`.
 * @property {URLSearchParams} query Parameters of the address.
 * @property {(content: unknown) => void} show Fills the page; nothing happens once the reader has left it.
 * @property {(title: string) => void} setTitle
 * @property {() => Promise<void>} reload Opens the page anew.
 * @property {AbortSignal} signal Aborts when the reader leaves the page.
 */

/**
 * @typedef {object} Screen
 * @property {string} path Such as `/users/:id`.
 * @property {string} title Heading, title of the document and name in the menu.
 * @property {boolean} [inMenu]
 * @property {keyof import('./session.js').Capabilities} [needs] Without it the screen is not in the menu.
 * @property {(page: Page) => void | Promise<void>} open Called at each change of the address.
 */

export {}
