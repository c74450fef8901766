import { clipPageCss, embedPageCss } from '../styles.ts'

/** Styles of a clip's page, and a grid. */
export const albumPageCss = `${clipPageCss}
header, main { max-width: 1840px }
.intro { max-width: 60rem; margin: 0 auto 1.5rem; text-align: center }
.description { margin: .5rem 0 0; color: var(--quiet); overflow-wrap: anywhere; white-space: pre-line }
.empty { color: var(--quiet); text-align: center }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13.5rem), 1fr)); gap: 1.25rem 1rem; margin: 0; padding: 0; list-style: none }
.grid li { min-width: 0 }
.grid a { display: block; color: inherit; text-decoration: none }
.frame, .grid .closed { display: grid; place-items: center; overflow: hidden; position: relative; aspect-ratio: 16 / 10; border-radius: 12px; background: var(--fill) 0 0 / 100% 100% no-repeat }
.frame img, .frame video { position: absolute; inset: 0; width: 100%; height: 100%; object-fit: contain }
.name { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; margin-top: .5rem; font-weight: 600; line-height: 1.35; overflow-wrap: anywhere }
.length { color: var(--quiet); font-size: .875rem }
.grid a:hover .name { color: var(--accent) }
.grid a:focus-visible { outline: 3px solid var(--accent); outline-offset: 4px; border-radius: 12px }
.grid .gate { position: relative; border-radius: 12px }
.grid .closed { background: #0a0b0d }
.grid .gate:not([open]) { background: none }
.grid .gate .notice { gap: .25rem; padding: .5rem }
.grid .gate summary:focus-visible { outline: 3px solid var(--accent); outline-offset: 4px; border-radius: 12px }
.parts { display: flex; flex-wrap: wrap; justify-content: center; gap: 0 2rem; margin-top: 1.5rem }
.parts .onward { padding: .5rem 0 }
@media (max-width: 40rem) {
  main { padding: 0 1rem 2rem }
  .intro { margin-bottom: 1rem }
  .grid { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem .75rem }
  .grid .gate .notice > span:not(.button) { display: none }
}
@media (max-width: 22rem) { .grid { grid-template-columns: minmax(0, 1fr) } }
`

/** Styles of a clip's player, and arrows at its sides. */
export const albumEmbedCss = `${embedPageCss}
.arrow { position: absolute; z-index: 1; top: calc(50% - 1.5rem); left: .5rem; display: grid; place-items: center; width: 3rem; height: 3rem; border-radius: 50%; background: #000a; color: #fff; font-size: 1.5rem; line-height: 1; text-decoration: none }
.arrow[rel=next] { right: .5rem; left: auto }
.arrow:hover { background: #000 }
.arrow:focus-visible { outline: 3px solid #6ea0ff; outline-offset: 2px }
.place { position: absolute; z-index: 1; top: .5rem; left: 50%; padding: .125rem .625rem; border-radius: 99px; background: #000a; color: #fff; font-size: .8125rem; transform: translateX(-50%); pointer-events: none }
.home { max-width: calc(50% - 3.5rem) }
.notice { padding-inline: 3.75rem }
@media (max-width: 16rem) { .place { display: none } .arrow { width: 2rem; height: 2rem; font-size: 1rem } }
`
