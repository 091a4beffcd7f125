# A training on an environment of one's own with the installed package: one class and one file, as `caftan new` writes them.
file(REMOVE_RECURSE ${PREFIX}/beam)
execute_process(COMMAND ${PREFIX}/package/bin/caftan new beam --from beam --into ${PREFIX} OUTPUT_QUIET
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${PREFIX}/beam -B ${PREFIX}/beam/build
          -DCMAKE_PREFIX_PATH=${PREFIX}/package -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_CXX_FLAGS=${CXX_FLAGS}
          -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${PREFIX}/beam/build COMMAND_ERROR_IS_FATAL ANY)

function(expect result output)  # arguments...: runs the program, compares its exit code and a piece of what it says
  execute_process(COMMAND ${PREFIX}/beam/build/beam ${ARGN} WORKING_DIRECTORY ${PREFIX}/beam
                  RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT code EQUAL result OR NOT said MATCHES "${output}")
    message(SEND_ERROR "beam ${ARGN}: exit ${code}, not ${result}, or no '${output}' in:\n${said}")
  endif()
endfunction()
expect(0 "evaluation: last [0-9.]+ at" run beam.toml)
expect(0 "checkpoints/best: Beam, frames .*mean 1[0-9.]+ of 3 episodes|mean 200.0 of 3 episodes" play runs/latest --episodes 3)
expect(0 "usage: beam play RUN" play --help)
expect(2 "no environment 'Baem'; did you mean 'Beam'" check beam.toml roles.learner.config.environment=Baem)
expect(0 "actor_critic.learner" help)
