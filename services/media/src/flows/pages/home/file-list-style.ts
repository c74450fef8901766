/** Styles of the list of files on the home page, and of the lines about the session and interrupted uploads. */
export const fileListCss = `
.account { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .5rem 1rem; margin-top: 1rem; padding: .75rem 1rem; border-radius: 10px; background: var(--fill); font-size: .875rem; overflow-wrap: anywhere }
.account p, .account form, .notice-box p { margin: 0 }
.account a, .hint a, .files a { color: var(--accent) }
.account a { margin-left: .5rem; font-weight: 600 }
.account button, .notice-box button, .files button, #list > .row button { min-height: 2.25rem; padding: .25rem .75rem; font-size: .875rem }
.notice-box { margin-top: 1rem; padding: .75rem 1rem; border: 1px solid var(--line); border-left: 4px solid var(--accent); border-radius: 10px; font-size: .875rem; overflow-wrap: anywhere }
.notice-box ul { margin: .25rem 0; padding-left: 1.25rem }
.notice-box button { margin-top: .5rem }
#choose-folder { min-height: 2.25rem; margin-top: .5rem; padding: .25rem .75rem }
#source { min-height: 2.75rem; max-height: 16rem; resize: vertical; field-sizing: content; overflow-wrap: anywhere }
textarea[aria-invalid=true], select[aria-invalid=true] { border-color: var(--bad); box-shadow: 0 0 0 1px var(--bad) }
#list { margin-top: 1.75rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
h2 { margin: 0; font-size: 1.0625rem }
.files { margin: .5rem 0 0; padding: 0; list-style: none }
.files > li { display: grid; gap: .375rem; padding: .875rem 0; border-top: 1px solid var(--line) }
.files .head { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0 .75rem }
.files .name { min-width: 0; font-weight: 600; font-size: .9375rem; overflow-wrap: anywhere }
.files .name:focus { outline: none }
.files .foot { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem }
.files .foot input { flex: 1 1 9rem; min-width: 0; width: auto; min-height: 2.25rem; padding: .25rem .75rem; font-size: .875rem }
.files .state { margin: 0; color: var(--quiet); font-size: .875rem; overflow-wrap: anywhere }
.files .bad .state { color: var(--bad) }
.files .bad .state::before { content: "! "; font-weight: 700 }
.files .acts { display: flex; flex-wrap: wrap; gap: .375rem }
.files summary { width: fit-content; color: var(--quiet); font-size: .875rem; font-weight: 600; cursor: pointer }
.files .links { margin: .5rem 0 }
#list > .row { flex-wrap: wrap; gap: .5rem 1rem }
`
